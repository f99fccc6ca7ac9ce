"""Makes the font and the video of the rendered pages that the replay judge crawls. Both are committed; this is their source.

usage: pip install fonttools==4.68.0 av==18.1.0; python make.py

- `blocks.ttf`: a font whose letters are rectangles, so that a picture shows at once whether it was used.
- `clip.webm`: two seconds of one colour (VP8), so that all of its frames look alike.
"""

import os

import av
from av.video.frame import VideoFrame
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

HERE = os.path.dirname(os.path.abspath(__file__))

# Width and height of the video, frames per second, number of frames.
WIDTH, HEIGHT, RATE, FRAMES = 160, 96, 5, 10


def font(file):
    pen = TTGlyphPen(None)
    pen.moveTo((100, 0))
    for point in [(100, 700), (500, 700), (500, 0)]:
        pen.lineTo(point)
    pen.closePath()
    block, empty = pen.glyph(), TTGlyphPen(None).glyph()
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "space", "block"])
    builder.setupCharacterMap({32: "space"} | {letter: "block" for letter in range(33, 127)})
    builder.setupGlyf({".notdef": empty, "space": empty, "block": block})
    builder.setupHorizontalMetrics({".notdef": (600, 0), "space": (600, 0), "block": (600, 100)})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": "Blocks", "styleName": "Regular"}, mac=False)
    builder.setupOS2(sTypoAscender=800, sTypoDescender=-200, usWinAscent=800, usWinDescent=200)
    builder.setupPost(keepGlyphNames=False)
    # A fixed time: the file must not depend on the time at which it is made.
    builder.updateHead(created=0, modified=0)
    builder.font.recalcTimestamp = False
    builder.save(file)


def video(file):
    with av.open(file, "w", format="webm", options={"fflags": "+bitexact"}) as output:
        stream = output.add_stream("libvpx", rate=RATE)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.options = {"crf": "30", "b": "20k"}
        for number in range(FRAMES):
            frame = VideoFrame(WIDTH, HEIGHT, "yuv420p")
            # One luma and two chroma values, which make a blue.
            for plane, value in zip(frame.planes, (90, 170, 100)):
                plane.update(bytes([value]) * plane.buffer_size)
            frame.pts = number
            for packet in stream.encode(frame):
                output.mux(packet)
        for packet in stream.encode():
            output.mux(packet)


if __name__ == "__main__":
    font(os.path.join(HERE, "blocks.ttf"))
    video(os.path.join(HERE, "clip.webm"))
