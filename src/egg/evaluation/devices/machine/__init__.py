"""A device that exists in memory alone, so that attacks on streams, clocks, caches and allocators are unit tests."""
