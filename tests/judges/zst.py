"""Unpacks .warc.zst files with an independent decoder, by the IIPC's specification; trains dictionaries.

usage: zst.py unpack FROM TO     unpacks every .warc.zst of a directory as .warc into another
       zst.py train FROM FILE    makes a dictionary from the records of every .warc.gz of a directory

Prints an error for each frame that is not one whole record of WARC/1.1, has no checksum, or names the wrong dictionary. Exits with
1 if there was an error.
"""

import glob
import gzip
import os
import struct
import sys

import zstandard

# Skippable frames have 16 magic numbers (RFC 8878, section 3.1.2). The specification uses the one that ends in D for dictionaries.
DICTIONARY_MAGIC = 0x184D2A5D
FRAME_MAGIC = b"\x28\xb5\x2f\xfd"


def main():
    what, source, target = sys.argv[1:]
    faults = unpack(source, target) if what == "unpack" else train(source, target)
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


def unpack(source, target):
    faults = []
    os.makedirs(target, exist_ok=True)
    files = sorted(glob.glob(os.path.join(source, "*.warc.zst")))
    if not files:
        return [f"no .warc.zst in {source}"]
    for file in files:
        name = os.path.basename(file)
        with open(file, "rb") as stream:
            rest = stream.read()
        dictionary, rest = dictionary_of(rest)
        decoder = zstandard.ZstdDecompressor(dict_data=dictionary)
        frames = 0
        with open(os.path.join(target, name.removesuffix(".zst")), "wb") as out:
            while rest:
                frame = zstandard.get_frame_parameters(rest)
                one = decoder.decompressobj()
                record = one.decompress(rest)
                if not record.startswith(b"WARC/1.1\r\n") or not record.endswith(b"\r\n\r\n"):
                    faults.append(f"{name}: frame {frames} is not a record")
                if record.count(b"\r\nWARC-Record-ID:") != 1:
                    faults.append(f"{name}: frame {frames} is not one record")
                if not frame.has_checksum:
                    faults.append(f"{name}: frame {frames} has no checksum")
                if (frame.dict_id != 0) != (dictionary is not None):
                    faults.append(f"{name}: frame {frames} names dictionary {frame.dict_id}")
                out.write(record)
                rest = one.unused_data
                frames += 1
        print(f"{name}: {frames} frames, {'a' if dictionary else 'no'} dictionary")
    return faults


def dictionary_of(data):
    """The dictionary at the beginning of a file, which may be compressed itself, or None; and the rest of the file."""
    magic, length = struct.unpack("<II", data[:8])
    if magic != DICTIONARY_MAGIC:
        return None, data
    content, rest = data[8 : 8 + length], data[8 + length :]
    if content.startswith(FRAME_MAGIC):
        content = zstandard.ZstdDecompressor().decompress(content)
    return zstandard.ZstdCompressionDict(content), rest


def train(source, target):
    samples = []
    for file in sorted(glob.glob(os.path.join(source, "*.warc.gz"))):
        with gzip.open(file) as stream:
            # Splitting at the version line is inexact, but a dictionary can be trained from any data.
            samples += [b"WARC/1.1\r\n" + record[:8192] for record in stream.read().split(b"WARC/1.1\r\n")[1:]]
    with open(target, "wb") as out:
        out.write(zstandard.train_dictionary(8192, samples).as_bytes())
    return []


if __name__ == "__main__":
    main()
