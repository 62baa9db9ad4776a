//! Tests of what is special to rxBisect.
