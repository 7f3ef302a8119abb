"""Official VERA-MH bundles, versions 1.0 to 2.0, as they are published. Knows no bundle of our own format."""

from vera_local.bundle.upstream.layout import Layout, find
from vera_local.bundle.upstream.load import NOTICE, Read, read
from vera_local.bundle.upstream.prompts import END_SIGNAL

__all__ = ["END_SIGNAL", "NOTICE", "Layout", "Read", "find", "read"]
