"""JSON, parsed by Python's json.

Expected: strings that are an absolute URL. Allowed: any string, and any URL in a string.
"""

import json

from walk import addresses_in, is_address, judge_all, line, trim


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)


def judge(data, _file):
    found = list(strings(json.loads(data.decode("utf-8-sig", errors="replace"))))
    expected = [line(trim(text)) for text in found if is_address(text)]
    allowed = [line(trim(text)) for text in found]
    allowed += [line(address) for text in found for address in addresses_in(text)]
    return expected, allowed


judge_all(judge)
