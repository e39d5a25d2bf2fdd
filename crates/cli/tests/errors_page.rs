//! `docs/errors.md` lists every code that a user or a client can meet, and no code that does not exist. The codes are read from
//! the sources.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

type Codes = BTreeSet<String>;

const PROVIDER: &str = "crates/core/src/port/provider.rs";
const REFUSAL: &str = "crates/runtime/src/dispatch/refusal.rs";
const A2A_ERROR: &str = "crates/interfaces/a2a/src/error.rs";
const ANSWER_ERROR: &str = "crates/interfaces/transport/src/answer/answer_error.rs";
const OPENAI_ERROR: &str = "crates/interfaces/openai_api/src/openai_error.rs";
const ANTHROPIC_ERROR: &str = "crates/interfaces/anthropic_api/src/anthropic_error.rs";
/// The codes of the constructors with which the MCP server and the ACP interface make JSON-RPC errors.
const JSON_RPC_ERRORS: [(&str, &str); 8] = [
    ("parse_error", "-32700"),
    ("invalid_request", "-32600"),
    ("method_not_found", "-32601"),
    ("invalid_params", "-32602"),
    ("internal_error", "-32603"),
    ("resource_not_found", "-32002"),
    ("session_not_found", "-32002"),
    // Its code is a number in the same file.
    ("new", ""),
];
/// Where answers of chats, responses and messages get their codes.
const ANSWER_CODES: [&str; 2] =
    ["crates/interfaces/openai_api/src", "crates/interfaces/transport/src/answer"];
/// Agents record the answers to requests here, tasks their failures elsewhere.
const INBOX: &str = "crates/runtime/src/inbox/";

/// Files that write `"code": VARIABLE`, with the begin and the end of the parts that hold the values of the variable. A file
/// that is not listed fails the test.
const VARIABLE_CODES: [(&str, &str, &str); 6] = [
    ("crates/runtime/src/task/control/interrupt.rs", "const INTERRUPTED: &str = ", ";"),
    ("crates/runtime/src/runner/run_in_runner.rs", "fail_runner(\"", ","),
    ("crates/runners/a2a/src/follower/record.rs", "=> failed(\"", "\""),
    ("crates/runtime/src/task/step/ask_model.rs", "let code = match ", "};"),
    ("crates/runtime/src/task/step/task_end.rs", "let code = match ", "};"),
    ("crates/runtime/src/inbox/start_agent.rs", "let why = if ", ";"),
];

/// Files that write the code of a failed task as they found it.
const RELAYED_CODES: [&str; 5] = [
    "crates/interfaces/acp/src/turn.rs",
    "crates/interfaces/mcp_server/src/failure.rs",
    "crates/interfaces/mcp_server/src/task_view.rs",
    "crates/interfaces/openai_api/src/responses/response_format.rs",
    "crates/interfaces/openai_api/src/responses/stored_response.rs",
];

/// Like [`VARIABLE_CODES`]: the replies that an agent gets to its own requests.
const REPLY_CODES: (&str, &str, &str) =
    ("crates/runtime/src/inbox/requests.rs", "self.failed_reply(", ")");

/// The replies to requests whose time is over.
const OVERDUE_REPLIES: &str = "crates/runtime/src/inbox/overdue_requests.rs";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of a source file without comments and unit tests.
fn source(path: &str) -> String {
    let text =
        fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let text = text.split("#[cfg(test)]").next().unwrap();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Paths of all source files of the workspace, relative to its root.
fn sources() -> Vec<String> {
    let root = root();
    let mut folders = vec![root.join("crates")];
    let mut paths = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !["tests", "examples", "benches", "target"].contains(&name) {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && name != "tests.rs" {
                paths.push(path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    paths.sort();
    assert!(paths.len() > 100, "the sources are not at {}", root.display());
    paths
}

/// The parts of `text` from each `begin` (included) to the next `end`.
fn parts<'a>(text: &'a str, begin: &str, end: &str) -> Vec<&'a str> {
    let starts = text.match_indices(begin).map(|(at, _)| at);
    starts
        .map(|at| {
            let rest = &text[at..];
            let length =
                rest[begin.len()..].find(end).unwrap_or_else(|| panic!("no `{end}`: {rest}"));
            &rest[..begin.len() + length]
        })
        .collect()
}

/// The only part of a file between `begin` and `end`.
fn part(path: &str, begin: &str, end: &str) -> String {
    let text = source(path);
    let found = parts(&text, begin, end);
    assert_eq!(found.len(), 1, "{path}: `{begin}` is expected once");
    found[0].to_owned()
}

/// The string literals of a text that have the form of a code. Other literals are texts for people.
fn literals(text: &str) -> Codes {
    let inner = text.split('"').skip(1).step_by(2);
    let is_code =
        |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    inner.filter(is_code).map(str::to_owned).collect()
}

/// `FooBar` as `foo_bar`.
fn snake_case(variant: &str) -> String {
    let mut word = String::new();
    for letter in variant.chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}

/// The variants of an enum of a formatted file, as its JSON names in snake case.
fn variants(path: &str, name: &str) -> Codes {
    let body = part(path, &format!("pub enum {name} {{"), "\n}");
    let names = body.lines().skip(1).filter_map(|line| {
        let variant = line.strip_prefix("    ")?;
        let first = variant.chars().next()?;
        let end = variant.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(variant.len());
        first.is_ascii_uppercase().then(|| snake_case(&variant[..end]))
    });
    names.collect()
}

/// The codes of the tables below a heading: the first cell of each row.
fn rows(page: &str, heading: &str) -> Codes {
    let mut lines = page.lines().skip_while(|line| *line != heading);
    assert!(lines.next().is_some(), "docs/errors.md has no `{heading}`");
    let section = lines.take_while(|line| !line.starts_with('#'));
    let mut codes = Codes::new();
    for line in section.filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let Some(code) = cells[0].strip_prefix('`').and_then(|cell| cell.strip_suffix('`')) else {
            continue;
        };
        assert_eq!(cells.len(), 3, "{heading}: code, cause, remedy: {line}");
        assert!(cells.iter().all(|cell| !cell.is_empty()), "{heading}: an empty cell: {line}");
        assert!(codes.insert(code.to_owned()), "{heading}: `{code}` has two rows");
    }
    codes
}

fn page() -> String {
    fs::read_to_string(root().join("docs/errors.md")).unwrap()
}

#[track_caller]
fn check(heading: &str, expected: &Codes) {
    let found = rows(&page(), heading);
    let missing: Vec<_> = expected.difference(&found).collect();
    let unknown: Vec<_> = found.difference(expected).collect();
    assert!(!expected.is_empty(), "no codes for `{heading}` in the sources");
    assert!(missing.is_empty(), "docs/errors.md, `{heading}`: rows are missing for {missing:?}");
    assert!(unknown.is_empty(), "docs/errors.md, `{heading}`: no source has {unknown:?}");
}

/// The codes that the sources write as `"code": …`: of failed tasks, and of failed requests.
fn recorded_codes() -> (Codes, Codes) {
    let mut tasks = Codes::new();
    let mut requests = Codes::new();
    let mut variable = BTreeSet::new();
    for path in sources() {
        let text = source(&path);
        let codes = if path.starts_with(INBOX) { &mut requests } else { &mut tasks };
        for found in parts(&text, "\"code\": ", ",") {
            match found["\"code\": ".len()..].strip_prefix('"') {
                Some(code) => drop(codes.insert(code.split('"').next().unwrap_or(code).to_owned())),
                None => drop(variable.insert(path.clone())),
            }
        }
    }
    // Errors of chat and of A2A have their own sections.
    assert!(variable.remove(OPENAI_ERROR));
    assert!(variable.remove(A2A_ERROR));
    for path in RELAYED_CODES {
        assert!(variable.remove(path), "{path} writes no `\"code\": VARIABLE` any more");
    }
    for (path, begin, end) in VARIABLE_CODES.into_iter().chain([REPLY_CODES]) {
        assert!(variable.remove(path), "{path} writes no `\"code\": VARIABLE` any more");
        let text = source(path);
        let found: Codes = parts(&text, begin, end).into_iter().flat_map(literals).collect();
        assert!(!found.is_empty(), "{path}: no codes in `{begin}…{end}`");
        let codes = if path.starts_with(INBOX) { &mut requests } else { &mut tasks };
        codes.extend(found);
    }
    let overdue = source(OVERDUE_REPLIES);
    requests.extend(parts(&overdue, "self.failed_reply(", ")").into_iter().flat_map(literals));
    assert!(
        variable.is_empty(),
        "say in VARIABLE_CODES which codes these files write: {variable:?}"
    );
    (tasks, requests)
}

#[test]
fn every_exit_code_is_on_the_page() {
    let body = part("crates/cli/src/failure.rs", "impl Exit {", "\n}");
    let numbers = body.lines().filter_map(|line| {
        let number = line.trim().strip_prefix("Self::")?.split_once("=> ")?.1;
        Some(number.trim_end_matches(',').to_owned())
    });
    check("## Exit codes", &numbers.collect());
}

#[test]
fn every_code_and_cause_of_the_api_is_on_the_page() {
    let codes = variants("crates/core/src/error.rs", "ErrorCode");
    check("## HTTP API", &codes.iter().map(|code| code.to_ascii_uppercase()).collect());
    let api_error = "crates/interfaces/transport/src/api_error.rs";
    check("### `details.cause`", &literals(&part(api_error, "fn cause(", "\n}")));
    let elsewhere = parts(&source(api_error), "(\"cause\", ", ")").join("\n");
    assert!(literals(&elsewhere).contains("budget"), "{elsewhere}");
}

#[test]
fn every_code_of_a_failed_task_is_on_the_page() {
    let (mut codes, _) = recorded_codes();
    codes.extend(literals(&part(PROVIDER, "pub fn code(&self)", "\n    }")));
    check("## Failed tasks", &codes);
    check("## Limits", &variants("crates/runtime/src/task/limits.rs", "LimitReached"));
}

#[test]
fn every_refusal_of_a_call_is_on_the_page() {
    check("## Refused calls", &literals(&part(REFUSAL, "pub fn code(&self)", "\n    }")));
}

#[test]
fn every_rejection_and_every_failed_answer_is_on_the_page() {
    check(
        "## Rejected interactions",
        &variants("crates/runtime/src/inbox/arrival.rs", "Rejection"),
    );
    let (_, mut codes) = recorded_codes();
    let rejection = part(REPLY_CODES.0, "fn rejection_reply(", "\n    }");
    codes.extend(literals(&rejection));
    check("## Failed requests", &codes);
}

#[test]
fn every_code_and_type_of_a_chat_is_on_the_page() {
    let quota = literals(&part(ANSWER_ERROR, "const QUOTA: &str = ", ";"));
    let failed = part(ANSWER_ERROR, "pub fn failed(", "\n    }");
    let mut codes = quota.clone();
    let in_answers = |path: &&String| ANSWER_CODES.iter().any(|folder| path.starts_with(folder));
    for path in sources().iter().filter(in_answers) {
        for found in parts(&source(path), ".coded(", ")") {
            match &found[".coded(".len()..] {
                "QUOTA" | "code" => assert_eq!(path, ANSWER_ERROR, "{found}"),
                literal => {
                    let code = literals(literal);
                    assert_eq!(code.len(), 1, "{path}: a literal is expected: {found}");
                    codes.extend(code);
                }
            }
        }
    }
    // `failed` passes the codes of tasks on, except for these.
    codes.extend(parts(&failed, ".unwrap_or(\"failed", ")").iter().flat_map(|part| literals(part)));
    codes.extend(parts(&failed, "{ \"", " }").iter().flat_map(|part| literals(part)));
    codes.extend(literals(&part(OPENAI_ERROR, "let code = match status {", "};")));
    check("## Chat codes", &codes);
    let mut passed = rows(&page(), "## Failed tasks");
    passed.extend(codes);
    let statuses = literals(&part(ANSWER_ERROR, "let status = match code {", "};"));
    assert!(statuses.is_subset(&passed), "{statuses:?}");
    let mut types = literals(&part(OPENAI_ERROR, "fn kind(", "\n}"));
    types.extend(quota);
    check("### Chat types", &types);
}

#[test]
fn every_type_of_the_messages_api_is_on_the_page() {
    let mut types = literals(&part(ANTHROPIC_ERROR, "fn kind(", "\n}"));
    types.extend(literals(&part(ANTHROPIC_ERROR, "let kind = if ", "}")));
    check("## Messages types", &types);
}

/// The codes of the JSON-RPC errors that the sources of an interface make: with a constructor of `kind`, or as a number.
fn json_rpc_codes(folder: &str, kind: &str) -> Codes {
    let mut codes = Codes::new();
    for path in sources().iter().filter(|path| path.starts_with(folder)) {
        let text = source(path);
        for found in parts(&text, kind, "(") {
            let name = &found[kind.len()..];
            let known = JSON_RPC_ERRORS.iter().find(|(constructor, _)| *constructor == name);
            let (_, code) = known.unwrap_or_else(|| panic!("{path}: which code has `{found}`?"));
            codes.insert((*code).to_owned());
        }
        let numbers = text.match_indices("-32").map(|(at, _)| &text[at..]);
        let end =
            |rest: &str| rest[1..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - 1);
        codes.extend(numbers.map(|rest| rest[..=end(rest)].to_owned()));
    }
    codes.remove("");
    codes
}

#[test]
fn every_code_of_json_rpc_is_on_the_page() {
    let mcp = json_rpc_codes("crates/interfaces/mcp_server/src", "ErrorData::");
    check("## MCP codes", &mcp);
    // Other types have names that end like this one.
    let mut acp = Codes::new();
    for kind in [" Error::", "(Error::"] {
        acp.extend(json_rpc_codes("crates/interfaces/acp/src", kind));
    }
    check("## ACP codes", &acp);
}

#[test]
fn every_reason_of_a2a_is_on_the_page() {
    let text = source(A2A_ERROR);
    // What `google.rpc.Status` names is not a reason.
    let (before, rest) = text.split_once("pub(crate) fn http(").unwrap();
    let after = rest.split_once("\n    }").unwrap().1;
    let words = [before, after].into_iter().flat_map(|text| text.split('"').skip(1).step_by(2));
    let is_reason =
        |word: &&str| word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    check("## A2A reasons", &words.filter(is_reason).map(str::to_owned).collect());
}

#[test]
fn every_code_of_an_invalid_request_file_is_on_the_page() {
    let fault = source("crates/interfaces/file_drop/src/fault.rs");
    let constants = parts(&fault, ": &str = \"", "\";");
    let codes: Codes = constants
        .iter()
        .map(|constant| constant.trim_start_matches(": &str = \"").to_owned())
        .collect();
    check("## File drop", &codes);
    let api = rows(&page(), "## HTTP API");
    assert!(codes.is_subset(&api), "{codes:?}");
}

/// A new kind of code needs a section of the page and a test here.
#[test]
fn no_other_type_has_codes() {
    let files_with = |text: &str| -> Vec<String> {
        sources().into_iter().filter(|path| source(path).contains(text)).collect()
    };
    assert_eq!(files_with("fn code(&self) -> &'static str"), [PROVIDER, REFUSAL]);
    assert_eq!(files_with("serde(tag = \"reason\""), ["crates/runtime/src/inbox/arrival.rs"]);
    assert_eq!(files_with("serde(tag = \"limit\""), ["crates/runtime/src/task/limits.rs"]);
}
