#!/usr/bin/env python3
"""Writes shapes.rs: how the request of every API lies on the wire, from the message schemas in Kafka's clients jar.

    python3 generate.py path/to/kafka-clients-VERSION.jar > shapes.rs && rustfmt --edition 2024 shapes.rs
"""
import json
import re
import sys
import zipfile

FIXED = {"bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "float64": 8, "uuid": 16}
MAX = 32767


def versions(text):
    """(lowest, highest) of "3", "3+", "3-5"; None of "none"."""
    if text in (None, "none"):
        return None
    if text.endswith("+"):
        return int(text[:-1]), MAX
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def shape(type_name, field, structs):
    if type_name.startswith("[]"):
        return f"Array(&{shape(type_name[2:], field, structs)})"
    if type_name in FIXED:
        return f"Fixed({FIXED[type_name]})"
    if type_name == "string":
        return "Text"
    if type_name in ("bytes", "records"):
        return "Binary"
    fields = field.get("fields") or structs[type_name]
    name = "Nullable" if versions(field.get("nullableVersions")) and field["type"] == type_name else "Struct"
    return f"{name}(&[{''.join(line(f, structs) for f in fields)}])"


def line(field, structs):
    present = versions(field["versions"])
    tagged = versions(field.get("taggedVersions"))
    if present is None:
        return ""
    wire = shape(field["type"], field, structs)
    if tagged:
        return f"tagged({field['tag']}, {wire}),"
    if present[1] == MAX:
        return f"{'always(' if present[0] == 0 else f'from({present[0]}, '}{wire}),"
    return f"between({present[0]}, {present[1]}, {wire}),"


def main():
    jar = zipfile.ZipFile(sys.argv[1])
    requests = []
    for name in jar.namelist():
        if re.fullmatch(r"common/message/\w+Request\.json", name):
            text = jar.read(name).decode()
            message = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
            if message["validVersions"] != "none" and {"broker", "controller"} & set(message.get("listeners", [])):
                requests.append(message)
    print("// Written by generate.py from Kafka's message schemas; not edited by hand.")
    print("use super::{RequestShape, Shape::*, always, between, from, request, tagged};\n")
    print("/// Every request that a broker or a controller may be sent, by ascending api key.")
    print("pub(super) static SHAPES: &[RequestShape] = &[")
    for message in sorted(requests, key=lambda m: m["apiKey"]):
        structs = {s["name"]: s["fields"] for s in message.get("commonStructs", [])}
        flexible = versions(message["flexibleVersions"])
        fields = "".join(line(f, structs) for f in message["fields"])
        print(f"    // {message['name']}")
        print(f"    request({message['apiKey']}, {flexible[0] if flexible else MAX}, &[{fields}]),")
    print("];")


main()
