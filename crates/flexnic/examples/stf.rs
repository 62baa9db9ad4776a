use nicforge_flexnic::p4::{Engine, stf};
fn main() {
    let engine = if std::env::var("JIT").is_ok() { Engine::Compiled } else { Engine::Interpreter };
    let (mut ok, mut bad) = (0, 0);
    for path in std::env::args().skip(1) {
        let r = std::panic::catch_unwind(|| stf::run_file(format!("{path}.p4").as_ref(), format!("{path}.stf").as_ref(), &Default::default(), engine));
        match r {
            Err(_) => { bad += 1; println!("PANIC {path}") }
            Ok(r) if r.passed() => { ok += 1; println!("ok {path} {} {}", r.packets, r.expected) }
            Ok(r) => { bad += 1; println!("FAIL {path}\n{}", r.failures.join("\n")) }
        }
    }
    println!("passed {ok} failed {bad}");
}
