#!/usr/bin/env python3
"""Writes schemas.rs: the records of Kafka's internal topics and of the metadata log, from the schemas in Kafka's jars.

    python3 generate.py path/to/folder/of/jars > schemas.rs && rustfmt --edition 2024 schemas.rs
"""
import glob
import json
import re
import sys
import zipfile

MAX = 32767
SCALARS = {
    "bool": "Bool", "int8": "Int8", "int16": "Int16", "uint16": "Uint16", "int32": "Int32",
    "int64": "Int64", "float64": "Float64", "uuid": "Uuid", "string": "Text", "bytes": "Binary",
}
# Name of the table, what its schemas are for, the jar, and the names of the messages.
TABLES = [
    ("METADATA", "Records of the metadata log, by api key.", "kafka-metadata", lambda m: m["type"] == "metadata"),
    ("GROUP_KEYS", "Keys of `__consumer_offsets`.", "kafka-group-coordinator", lambda m: m["type"] == "coordinator-key"),
    ("GROUP_VALUES", "Values of `__consumer_offsets`.", "kafka-group-coordinator", lambda m: m["type"] == "coordinator-value"),
    ("TRANSACTION_KEYS", "Keys of `__transaction_state`.", "kafka-transaction-coordinator", lambda m: m["type"] == "coordinator-key"),
    ("TRANSACTION_VALUES", "Values of `__transaction_state`.", "kafka-transaction-coordinator", lambda m: m["type"] == "coordinator-value"),
    ("SHARE_KEYS", "Keys of `__share_group_state`.", "kafka-share-coordinator", lambda m: m["type"] == "coordinator-key"),
    ("SHARE_VALUES", "Values of `__share_group_state`.", "kafka-share-coordinator", lambda m: m["type"] == "coordinator-value"),
]
# Messages that stand alone, without an api key.
SINGLE = [
    ("LEADER_CHANGE", "LeaderChangeMessage"), ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"), ("KRAFT_VERSION", "KRaftVersionRecord"),
    ("KRAFT_VOTERS", "VotersRecord"), ("SUBSCRIPTION", "ConsumerProtocolSubscription"),
    ("ASSIGNMENT", "ConsumerProtocolAssignment"),
]


def versions(text):
    """(lowest, highest) of "3", "3+", "3-5"; an empty range of "none"."""
    if text in (None, "none"):
        return 1, 0
    if text.endswith("+"):
        return int(text[:-1]), MAX
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def kind(type_name, field, structs):
    if type_name.startswith("[]"):
        return f"Array(&{kind(type_name[2:], field, structs)})"
    if type_name in SCALARS:
        return SCALARS[type_name]
    fields = field.get("fields") or structs[type_name]
    return f"Struct(&[{''.join(line(f, structs) for f in fields)}])"


def default(field):
    value = field.get("default")
    if value is None or value == "":
        return "Zero"
    if value in ("null", "false"):
        return {"null": "Null", "false": "Zero"}[value]
    return f"Number({int(str(value), 0)})"


def line(field, structs):
    assert "flexibleVersions" not in field, field
    name = field["name"][0].lower() + field["name"][1:]
    text = f'field("{name}", {versions(field.get("versions", "0+"))}, {kind(field["type"], field, structs)})'
    if "nullableVersions" in field:
        text += f'.nullable({versions(field["nullableVersions"])})'
    if "taggedVersions" in field:
        text += f'.tagged({field["tag"]}, {versions(field["taggedVersions"])}, {default(field)})'
    return text + ","


def message(m):
    structs = {s["name"]: s["fields"] for s in m.get("commonStructs", [])}
    fields = "".join(line(f, structs) for f in m["fields"])
    first = versions(m["flexibleVersions"])
    flexible = first[0] if first[0] <= first[1] else MAX
    return f'Message {{ name: "{m["name"]}", api_key: {m.get("apiKey", -1)}, versions: {versions(m["validVersions"])}, flexible_from: {flexible}, fields: &[{fields}] }}'


def schemas(folder, jar):
    archive = zipfile.ZipFile(glob.glob(f"{folder}/{jar}-[0-9]*.jar")[0])
    for name in sorted(archive.namelist()):
        if re.fullmatch(r"common/(message|metadata)/\w+\.json", name):
            yield json.loads(re.sub(r"(?m)^\s*//.*$", "", archive.read(name).decode()))


def main():
    folder = sys.argv[1]
    print("// Written by generate.py from Kafka's message schemas; not edited by hand.")
    print("use super::schema::{Default::*, Kind::*, Message, field};\n")
    for table, about, jar, chosen in TABLES:
        found = [m for m in schemas(folder, jar) if chosen(m) and m["validVersions"] != "none"]
        print(f"/// {about}\npub(crate) static {table}: &[Message] = &[")
        for m in sorted(found, key=lambda m: m["apiKey"]):
            print(f"{message(m)},")
        print("];\n")
    singles = {m["name"]: m for m in schemas(folder, "kafka-clients")}
    for constant, name in SINGLE:
        print(f"/// `{name}`.\npub(crate) static {constant}: Message = {message(singles[name])};\n")


main()
