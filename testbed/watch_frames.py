"""Where the watches of an API server are in its HTTP/2 connection to etcd: pure, fed with the bytes of both ways.

gRPC sends many calls over one connection, each on a stream of its own. A watch is told from other calls by the first
message of its stream, which asks for a watch to be created; headers are never decoded.
"""

from collections.abc import Iterator

_PREFACE = 24  # bytes that a client sends before its first frame
_HEADER, _MESSAGE = 9, 5  # bytes before the payload of a frame, and before a message of gRPC
_DATA, _RESET, _WINDOW = 0, 3, 8  # types of frames
_LAST = 1  # the flag of the last frame of a stream
_FIELD_1, _FIELD_3 = 0x0A, 0x1A  # how the first field of a message begins, if it has a length


class Frames:
    """Cuts bytes into whole frames; what is not whole yet is kept."""

    def __init__(self, skip: int = 0) -> None:
        self._skip = skip
        self._rest = bytearray()

    def cut(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that are whole by now."""
        self._rest += data
        if self._skip:
            if len(self._rest) < self._skip:
                return
            del self._rest[: self._skip]
            self._skip = 0
        while len(self._rest) >= _HEADER:
            end = _HEADER + int.from_bytes(self._rest[:3], "big")
            if len(self._rest) < end:
                return
            yield bytes(self._rest[:end])
            del self._rest[:end]


class WatchFrames:
    """Knows which streams of one connection are watches, and holds what etcd sends on them for as long as it is told.

    The headers of a stream are never held: their compression depends on all that came before them.
    """

    def __init__(self) -> None:
        self._requests, self._answers = Frames(_PREFACE), Frames()
        self._begun: dict[int, bytes | None] = {}  # streams, and how they begin; None if that is judged
        self._watches: set[int] = set()
        self._held: list[bytes] = []
        self.holds = False

    def asked(self, data: bytes) -> None:
        """Note which streams are watches, from what the API server sends."""
        for frame in self._requests.cut(data):
            stream = _stream(frame)
            if frame[3] == _DATA:
                self._judge(stream, frame)
            elif frame[3] == _RESET:
                self._begun.pop(stream, None)
                self._watches.discard(stream)

    def answered(self, data: bytes) -> tuple[bytes, bytes]:
        """Return what of etcd's bytes to pass on, and what to send back to etcd so that it goes on sending."""
        passed, back = bytearray(), bytearray()
        for frame in self._answers.cut(data):
            if self.holds and frame[3] == _DATA and _stream(frame) in self._watches:
                self._held.append(frame)
                back += _window(len(frame) - _HEADER)
            else:
                passed += frame
        return bytes(passed), bytes(back)

    def release(self) -> bytes:
        """Hold no longer; return what was held."""
        self.holds = False
        held, self._held = b"".join(self._held), []
        return held

    def _judge(self, stream: int, frame: bytes) -> None:
        begin = self._begun.get(stream, b"")
        if begin is not None:
            begin += frame[_HEADER:]
            asks = asks_for_watch(begin)
            self._begun[stream] = begin if asks is None else None
            if asks:
                self._watches.add(stream)
        if frame[4] & _LAST:
            self._begun.pop(stream, None)


def asks_for_watch(begin: bytes) -> bool | None:
    """Tell whether a stream that begins so is one of watches; None if more of it must come first.

    Its first message is a WatchRequest: in field 1 the creation of a watch, which begins with its own field 1, the key,
    or in field 3 the wish to hear how far etcd is. Other calls have in field 1 a key, which begins with a slash, or a
    condition, which begins with another field.
    """
    message = begin[_MESSAGE:]
    if message and message[0] != _FIELD_1:
        return message[0] == _FIELD_3
    at = 1
    while at < len(message) and message[at] & 0x80:  # a length is as many bytes as say that more of them follow
        at += 1
    return message[at + 1] == _FIELD_1 if at + 1 < len(message) else None


def _stream(frame: bytes) -> int:
    return int.from_bytes(frame[5:_HEADER], "big") & 0x7FFF_FFFF


def _window(size: int) -> bytes:
    """Return a frame that lets the other side send so many more bytes on the whole connection."""
    if not size:
        return b""
    return b"\0\0\4" + bytes([_WINDOW, 0]) + bytes(4) + size.to_bytes(4, "big")
