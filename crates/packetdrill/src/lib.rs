//! The shared library that packetdrill loads.
