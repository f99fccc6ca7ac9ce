"""One component for all tests, since each takes a while to make and to load."""

import faulty
import headline
import inert

plugins = [*headline.plugins, *inert.plugins, *faulty.plugins]
