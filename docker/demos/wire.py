"""Requests of Kafka's protocol, byte by byte: for what no client library lets one ask, or asks one broker only."""

import socket
import struct
import time

ERRORS = {0: "NONE", 3: "UNKNOWN_TOPIC_OR_PARTITION", 6: "NOT_LEADER_OR_FOLLOWER", 74: "FENCED_LEADER_EPOCH",
          75: "UNKNOWN_LEADER_EPOCH"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return values if len(values) > 1 else values[0]

    def text(self):
        length = self.take("h")
        if length < 0:
            return None
        self.at += length
        return self.data[self.at - length:self.at].decode()

    def array(self, element):
        return [element() for _ in range(self.take("i"))]


def text(value):
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def ask(address, api_key, version, body):
    """Sends one request to host:port and gives a reader of the answer's body."""
    host, port = address.rsplit(":", 1)
    request = struct.pack(">hhi", api_key, version, 1) + text("demo") + body
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = connection.makefile("rb")
        size = struct.unpack(">i", answer.read(4))[0]
        reader = Reader(answer.read(size))
    reader.take("i")  # the correlation id
    return reader


def partitions(address, topic):
    """What a broker's Metadata says of each partition: leader, epoch, replicas, in-sync replicas."""
    reader = ask(address, 3, 7, struct.pack(">i", 1) + text(topic) + b"\0")
    reader.take("i")  # throttle time
    reader.array(lambda: (reader.take("i"), reader.text(), reader.take("i"), reader.text()))  # brokers
    reader.text()  # cluster id
    reader.take("i")  # controller id

    def partition():
        _, index, leader, epoch = reader.take("hiii")
        replicas, isr, _ = (reader.array(lambda: reader.take("i")) for _ in range(3))
        return index, {"leader": leader, "epoch": epoch, "replicas": replicas, "isr": isr}

    def of_topic():
        reader.take("h")
        reader.text()
        reader.take("b")
        return dict(reader.array(partition))

    return reader.array(of_topic)[0]


def end_of_epoch(address, topic, believed_epoch, of_epoch):
    """OffsetForLeaderEpoch of partition 0 by somebody who believes in an epoch: the error, the epoch and its end."""
    asked = struct.pack(">iii", 0, believed_epoch, of_epoch)
    reader = ask(address, 23, 2, struct.pack(">i", 1) + text(topic) + struct.pack(">i", 1) + asked)
    reader.take("i")  # throttle time
    reader.take("i")  # one topic
    reader.text()
    reader.take("i")  # one partition
    error, _, epoch, end = reader.take("hiiq")
    return ERRORS.get(error, str(error)), epoch, end


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def batch(value):
    """A batch of one record, uncompressed and without a producer id."""
    value = value.encode()
    assert len(value) < 32, "numbers in a record are written in one byte each, doubled; 1 stands for -1: no key"
    record = bytes([0, 0, 0, 1, len(value) * 2]) + value + b"\0"
    now = int(time.time() * 1000)
    data = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + bytes([len(record) * 2]) + record
    data = struct.pack(">ibI", -1, 2, crc32c(data)) + data
    return struct.pack(">qi", 0, len(data)) + data


def produce(address, topic, value, acks):
    """Produce of one record to partition 0, asked of this broker and no other: the error and the offset."""
    records = batch(value)
    body = struct.pack(">hhii", -1, acks, 5000, 1) + text(topic) + struct.pack(">iii", 1, 0, len(records)) + records
    reader = ask(address, 0, 3, body)
    reader.take("i")  # one topic
    reader.text()
    reader.take("i")  # one partition
    _, error, offset, _ = reader.take("ihqq")
    return ERRORS.get(error, str(error)), offset
