"""What all tests share."""

import signal

# A process that a shell starts in the background ignores Ctrl-C, and so would all it starts. Tests
# press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
