//! The scanner tells code from text.

use nicforge_tidy::lengths::functions;
use nicforge_tidy::scan::{code_only, item_end, line_of, test_ranges, words};

#[test]
fn comments_and_literals_are_blanked_in_place() {
    let source = "let a = \"}\"; // }\nlet b = '}'; /* } /* } */ } */ let c = 1;\n";
    let code = code_only(source);
    assert_eq!(code.len(), source.len());
    assert!(!code.contains('}'), "{code}");
    assert_eq!(line_of(&code, code.find("let c").unwrap()), 2);
}

#[test]
fn escapes_do_not_end_a_literal() {
    assert!(!code_only(r#"f("\"{"); g('\'', '\\', '{', "\\"); h('\u{7b}')"#).contains('{'));
}

#[test]
fn raw_strings_end_where_their_hashes_match() {
    let code = code_only("r#\"{ \"quoted\" {\"#; br\"{\"; cr##\"\"# {\"##; { r#fn }");
    assert_eq!(code.matches('{').count(), 1, "{code}");
    assert!(code.contains("r#fn"));
}

#[test]
fn lifetimes_are_code_and_wide_characters_are_text() {
    let code = code_only("fn f<'a>(x: &'a str) -> char { 'é'; '→'; '{' }");
    assert!(code.contains("<'a>") && code.contains("&'a str"));
    assert_eq!(code.matches('{').count(), 1);
}

#[test]
fn unfinished_text_reaches_the_end() {
    for source in ["\"{", "/* {", "r#\"{", "'\\", "// {", "'", "\"\\"] {
        assert!(!code_only(source).contains('{'), "{source}");
    }
}

#[test]
fn words_are_whole() {
    let code = "Instant InstantX my_Instant a::Instant println!() xprintln!()";
    assert_eq!(words(code, "Instant").count(), 2);
    assert_eq!(words(code, "println!").count(), 1);
}

#[test]
fn an_item_ends_at_its_brace_or_semicolon() {
    assert_eq!(item_end("fn f(x: [u8; 2]) { { } } rest", 0), "fn f(x: [u8; 2]) { { } }".len());
    assert_eq!(item_end("fn f(); { }", 0), "fn f();".len());
    assert_eq!(item_end("fn f() {", 0), "fn f() {".len());
}

#[test]
fn test_code_is_found() {
    let code = "fn f() {}\n#[cfg(test)]\nmod tests { fn g() {} }\nfn h() {}";
    let ranges = test_ranges(code);
    assert_eq!(ranges.len(), 1);
    assert!(ranges[0].contains(&code.find("fn g").unwrap()));
    assert!(!ranges[0].contains(&code.find("fn h").unwrap()));
}

#[test]
fn functions_are_measured_from_fn_to_brace() {
    let source = "trait T { fn declared(&self); }\nfn one() {}\nfn three(f: fn(u8) -> u8) {\n    let a = \"}\";\n}\n";
    let found: Vec<_> = functions(&code_only(source)).into_iter().map(|f| (f.name, f.line, f.lines)).collect();
    assert_eq!(found, [("one".into(), 2, 1), ("three".into(), 3, 3)]);
}

#[test]
fn functions_in_functions_count_for_both() {
    let source = "fn outer() {\n    fn inner() {\n    }\n}";
    let found: Vec<_> = functions(source).into_iter().map(|f| (f.name, f.lines)).collect();
    assert_eq!(found, [("outer".into(), 4), ("inner".into(), 2)]);
}
