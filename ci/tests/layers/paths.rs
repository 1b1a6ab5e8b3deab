//! The paths that stand in a crate's files, in `use` and in line, macros' bodies included; without those of tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path within the crate, where it stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    /// The file, from `src` on.
    pub(crate) file: String,
    /// The module that the file is.
    pub(crate) from: Vec<String>,
    /// What is named, from the crate's root on.
    pub(crate) path: Vec<String>,
}

/// What the files below `src` name.
pub(crate) fn names(src: &Path) -> Vec<Named> {
    let mut all = BTreeSet::new();
    visit(src, &[], &mut |file, module, tokens| {
        let mut walk = Walk {
            module: module.to_vec(),
            paths: Vec::new(),
        };
        walk.tokens(tokens);
        for path in walk.paths {
            all.insert(Named {
                file: file.to_owned(),
                from: module.to_vec(),
                path,
            });
        }
    });
    all.into_iter().collect()
}

/// The names of statics below `src` whose type begins with `kind`.
pub(crate) fn statics_of_type(src: &Path, kind: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    visit(src, &[], &mut |_, _, tokens| {
        let words: Vec<String> = tokens.into_iter().map(|token| token.to_string()).collect();
        for window in words.windows(4) {
            if window[0] == "static" && window[2] == ":" && window[3] == kind {
                found.insert(window[1].clone());
            }
        }
    });
    found
}

/// Calls `each` with every file below `dir` that is no test: its name, its module, its tokens.
fn visit(dir: &Path, module: &[String], each: &mut dyn FnMut(&str, &[String], TokenStream)) {
    let root = dir;
    let mut files = vec![];
    let entry = ["lib.rs", "main.rs", "mod.rs"].map(|name| dir.join(name));
    let entry = entry.iter().find(|path| path.is_file());
    match entry {
        Some(path) => files.push((path.clone(), module.to_vec())),
        None if module.is_empty() => panic!("{}: no crate", root.display()),
        None => {}
    }
    while let Some((path, module)) = files.pop() {
        let text = fs::read_to_string(&path).expect("sources are UTF-8");
        let tokens: TokenStream = text.parse().expect("sources are Rust");
        let tokens = without_tests(tokens);
        for child in modules_of(tokens.clone()) {
            let below = [&module[..], std::slice::from_ref(&child)].concat();
            let folder = folder_of(&path);
            let found = [
                folder.join(format!("{child}.rs")),
                folder.join(&child).join("mod.rs"),
            ];
            if let Some(file) = found.into_iter().find(|file| file.is_file()) {
                files.push((file, below));
            }
        }
        each(&path.to_string_lossy(), &module, tokens);
    }
}

/// Where the modules are that the file at `path` declares.
fn folder_of(path: &Path) -> std::path::PathBuf {
    let dir = path.parent().expect("a file is in a folder");
    match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "main" | "mod") | None => dir.to_owned(),
        Some(stem) => dir.join(stem),
    }
}

/// The modules that are declared and are in files of their own.
fn modules_of(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let declared = tokens.windows(3).filter(|window| {
        is_ident(&window[0], "mod")
            && matches!(&window[2], TokenTree::Punct(p) if p.as_char() == ';')
    });
    declared.map(|window| window[1].to_string()).collect()
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

/// Leaves out the items under `#[cfg(test)]`, alone or with other conditions.
fn without_tests(tokens: TokenStream) -> TokenStream {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_attribute = matches!(&token, TokenTree::Punct(p) if p.as_char() == '#');
        if is_attribute && tokens.peek().is_some_and(is_cfg_test) {
            skip_item(&mut tokens);
            continue;
        }
        kept.push(match token {
            TokenTree::Group(group) => {
                let inner = without_tests(group.stream());
                TokenTree::Group(proc_macro2::Group::new(group.delimiter(), inner))
            }
            other => other,
        });
    }
    kept.into_iter().collect()
}

/// `[cfg(test)]`, `[cfg(all(test, ...))]`.
fn is_cfg_test(token: &TokenTree) -> bool {
    let text = token.to_string().replace(' ', "");
    text == "[cfg(test)]" || text.starts_with("[cfg(all(test,")
}

/// Skips an item: up to its `;`, or its body.
fn skip_item(tokens: &mut std::iter::Peekable<proc_macro2::token_stream::IntoIter>) {
    for token in tokens.by_ref() {
        match token {
            TokenTree::Punct(p) if p.as_char() == ';' => return,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return,
            _ => {}
        }
    }
}

struct Walk {
    /// The module whose text is walked.
    module: Vec<String>,
    paths: Vec<Vec<String>>,
}

impl Walk {
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if let [keyword, TokenTree::Ident(name), TokenTree::Group(body), ..] = &tokens[at..]
                && is_ident(keyword, "mod")
            {
                self.module.push(name.to_string());
                self.tokens(body.stream());
                self.module.pop();
                at += 3;
                continue;
            }
            let begins = |name| is_ident(&tokens[at], name) && is_path_separator(&tokens[at + 1..]);
            if begins("crate") || begins("super") || begins("self") {
                at += self.path(&tokens[at..]);
                continue;
            }
            if let TokenTree::Group(group) = &tokens[at] {
                self.tokens(group.stream());
            }
            at += 1;
        }
    }

    /// Takes the path that `tokens` begin with; how many tokens it is.
    fn path(&mut self, tokens: &[TokenTree]) -> usize {
        let mut base = if is_ident(&tokens[0], "crate") {
            Vec::new()
        } else {
            self.module.clone()
        };
        if is_ident(&tokens[0], "super") {
            base.pop();
        }
        1 + self.rest(base, &tokens[1..])
    }

    /// What follows a path's beginning: `::name`, `::{...}`, `::*`.
    fn rest(&mut self, mut base: Vec<String>, tokens: &[TokenTree]) -> usize {
        let mut at = 0;
        while is_path_separator(&tokens[at..]) {
            match tokens.get(at + 2) {
                Some(TokenTree::Ident(name)) if name == "super" => drop(base.pop()),
                Some(TokenTree::Ident(name)) if name == "self" => {}
                Some(TokenTree::Ident(name)) => base.push(name.to_string()),
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    self.alternatives(&base, group.stream());
                    return at + 3;
                }
                _ => break,
            }
            at += 3;
        }
        self.paths.push(base);
        at
    }

    /// The branches of a `use` tree.
    fn alternatives(&mut self, base: &[String], tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is_comma =
            |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
        for branch in tokens.split(is_comma) {
            if let Some(TokenTree::Ident(name)) = branch.first() {
                let mut base = base.to_vec();
                if name != "self" {
                    base.push(name.to_string());
                }
                self.rest(base, &branch[1..]);
            }
        }
    }
}

/// Does a path go on here?
fn is_path_separator(tokens: &[TokenTree]) -> bool {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ':');
    matches!(tokens, [a, b, ..] if is_colon(a) && is_colon(b))
}

#[test]
fn paths_in_use_trees_in_line_and_in_macros() {
    let text = "use crate::a::{self, b::{C, D as E}, f::*};\n\
                mod inner { use super::super::g::H; fn f() { self::k::l() } }\n\
                rows! { x => $crate::m::N; }\n\
                fn f() -> \"crate::no\" { super::o::P::<crate::q::R>::new() } // crate::no\n\
                #[cfg(test)] mod tests { use crate::no; }\n\
                #[cfg(all(test, not(loom)))] use crate::no;";
    let tokens: TokenStream = text.parse().expect("Rust");
    let mut walk = Walk {
        module: vec!["x".into(), "y".into()],
        paths: Vec::new(),
    };
    walk.tokens(without_tests(tokens));
    let found: BTreeSet<String> = walk.paths.iter().map(|path| path.join("::")).collect();
    let expected = [
        "a",
        "a::b::C",
        "a::b::D",
        "a::f",
        "m::N",
        "q::R",
        "x::g::H",
        "x::o::P",
        "x::y::inner::k::l",
    ];
    assert_eq!(found, expected.map(str::to_owned).into());
}
