"""zstd whose output is bounded: a frame yields exactly the bytes that were declared for it, or `Corrupt`."""

from __future__ import annotations

import sys

from agentvisor.core.errors import Corrupt

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_Compress, _Decompress = zstd.CompressionParameter, zstd.DecompressionParameter

_MIN_PREFIX = 8  # zstd takes no shorter one
_MIN_WINDOW_LOG, _MAX_WINDOW_LOG = 10, 27


def compress(data: bytes, *, level: int, prefix: bytes = b"") -> bytes:
    """Return one zstd frame of `data`. A prefix costs time with its length: it is indexed at every call."""
    if len(prefix) < _MIN_PREFIX:
        return zstd.compress(data, level)
    return zstd.compress(
        data,
        options={_Compress.compression_level: level, _Compress.window_log: _window_log(len(data) + len(prefix))},
        zstd_dict=zstd.ZstdDict(prefix, is_raw=True).as_prefix,
    )


def compress_patch(data: bytes, base: bytes) -> bytes:
    """Return one zstd frame of `data` that refers to matches anywhere in `base`: its prefix when it is decompressed."""
    if len(base) < _MIN_PREFIX:
        return zstd.compress(data, 1)
    return zstd.compress(
        data,
        options={
            _Compress.compression_level: 1,
            _Compress.enable_long_distance_matching: 1,
            _Compress.window_log: _window_log(len(data) + len(base)),
        },
        zstd_dict=zstd.ZstdDict(base, is_raw=True).as_prefix,
    )


def decompress(frame: bytes, *, size: int, prefix: bytes = b"") -> bytes:
    """Return the frame's content, which must be `size` bytes.

    Whatever the frame claims, no more than about `size` bytes are produced, and no window larger than an honest writer
    needs is allocated. Raises `Corrupt` where the content is longer or shorter, or the frame is not the whole input.
    """
    try:
        decompressor = zstd.ZstdDecompressor(
            zstd_dict=None if len(prefix) < _MIN_PREFIX else zstd.ZstdDict(prefix, is_raw=True).as_prefix,
            options={_Decompress.window_log_max: _window_log(size + len(prefix))},
        )
        # One byte more than declared, so that a longer content shows without being produced.
        content = decompressor.decompress(frame, max_length=size + 1)
    except zstd.ZstdError as error:
        raise Corrupt(f"not a zstd frame of {size} bytes: {error}") from error
    if len(content) != size or not decompressor.eof:
        raise Corrupt(f"the zstd frame does not hold the {size} bytes that were declared")
    if decompressor.unused_data:
        raise Corrupt(f"{len(decompressor.unused_data)} bytes follow the zstd frame")
    return content


def _window_log(size: int) -> int:
    # Both ends compute it from what both know, so that the reader can refuse every window that is larger.
    return min(max(size.bit_length(), _MIN_WINDOW_LOG), _MAX_WINDOW_LOG)
