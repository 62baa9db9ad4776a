fn main() {
    let verbose = std::env::var("V").is_ok();
    for path in std::env::args().skip(1) {
        let r = std::panic::catch_unwind(|| nicforge_flexnic::p4::compile::check_file(path.as_ref(), &Default::default()));
        match r {
            Err(_) => println!("PANIC {path}"),
            Ok(Ok(f)) => { println!("ok {path}"); if verbose { println!("{}", f.warnings) } }
            Ok(Err(d)) => { println!("ERR {path}"); if verbose { println!("{d}") } }
        }
    }
}
