"""Unpacks .warc.zst with other people's decoder, as the IIPC's specification says; makes dictionaries.

usage: zst.py unpack FROM TO     every .warc.zst of a directory, as .warc to another
       zst.py train FROM FILE    a dictionary of the records of every .warc.gz of a directory

Exits 1 where a frame is not a whole record of WARC/1.1, or has no checksum or length.
"""

import glob
import gzip
import os
import struct
import sys

import zstandard

# RFC 8878 section 3.1.2; the specification takes the one that ends in D for dictionaries.
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
        return [f"there is no .warc.zst in {source}"]
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
                    faults.append(f"{name}: frame {frames} is no record")
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
    """The dictionary that a file begins with, which may be packed itself, and what is behind it."""
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
            # Roughly: a dictionary may be made of anything.
            samples += [b"WARC/1.1\r\n" + record[:8192] for record in stream.read().split(b"WARC/1.1\r\n")[1:]]
    with open(target, "wb") as out:
        out.write(zstandard.train_dictionary(8192, samples).as_bytes())
    return []


if __name__ == "__main__":
    main()
