"""What tests of the house and of its extensions need: records with defaults, small real fakes, conformance suites.

`factories` makes every record, `fakes` plays every part of the machine in memory, `conformance` holds what each
Protocol promises as classes that a test suite subclasses.
"""
