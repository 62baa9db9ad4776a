//! Options of requests to a key-value store.

use nicforge_apps::options::ValueOptions;
use nicforge_options::{Allowed, choice, options};

options! {
    /// Pairs of a key-value store.
    pub struct Pairs {
        embed value: ValueOptions;
        /// Keys of the key-value store over all NICs; each NIC has its own.
        kvs_keys: u64 = 800_000, "keys", Allowed::Whole(1, 100_000_000),
            source "nicmem paper, set-up of the key-value store: 800 K pairs";
        /// Size of keys.
        kvs_key_bytes: u32 = 128, "bytes", Allowed::Whole(8, 4096),
            source "nicmem paper, set-up of the key-value store";
        /// Keys that are in the store before traffic begins, the likeliest ones first.
        kvs_preload_keys: Option<u64> = None, "keys", Allowed::Whole(0, 100_000_000), default "all keys";
    }
}

choice! {
    /// Which key a request is for.
    pub enum KeyChoice {
        /// Any, all equally likely.
        Uniform = "uniform",
        /// Some far likelier than others.
        Zipf = "zipf",
        /// Those of the hot area, and others.
        HotArea = "hot_area",
    }
}

options! {
    /// Requests to a key-value store.
    pub struct Requests {
        /// Share of PUTs.
        kvs_put_share: f64 = 0.05, "share", Allowed::Number(0.0, 1.0);
        /// Share of DELETEs; all other requests are GETs.
        kvs_delete_share: f64 = 0.0, "share", Allowed::Number(0.0, 1.0);
        /// Which key the next request is for; `flow_choice` says of which client it is.
        kvs_key_choice: KeyChoice = KeyChoice::Uniform, "", KeyChoice::ALLOWED;
    }
}

options! {
    /// Zipf's distribution of keys.
    pub struct KeyZipf {
        /// Exponent s of the keys' Zipf distribution.
        kvs_zipf_s: f64 = 0.99, "", Allowed::Number(0.0, 10.0);
    }
}

options! {
    /// Requests for the hot area.
    pub struct HotArea {
        /// Share of requests for keys in the hot area.
        hot_share: f64 = 0.5, "share", Allowed::Number(0.0, 1.0);
        /// The same of PUTs alone.
        hot_put_share: Option<f64> = None, "share", Allowed::Number(0.0, 1.0), default "hot_share";
    }
}
