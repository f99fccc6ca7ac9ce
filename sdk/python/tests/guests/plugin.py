"""One component for all tests, because each takes time to build and to load."""

import faulty
import headline
import inert

plugins = [*headline.plugins, *inert.plugins, *faulty.plugins]
