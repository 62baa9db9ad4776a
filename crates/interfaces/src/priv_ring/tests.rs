//! Tests of what is special to private rings; the shared suite covers the rest.
