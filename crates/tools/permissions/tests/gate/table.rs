//! Commands, rules, and what becomes of them.

use antiphon_permissions::Decision::{self, Allow, Ask, Deny};

use crate::world::{explain, file, gate, open_gate, script};

fn check(config: &str, sandboxed: bool, cases: &[(Decision, &str)]) {
    let gate = if sandboxed { gate(config) } else { open_gate(config) };
    for (expected, text) in cases {
        assert_eq!(script(&gate, text), *expected, "{text:?} under {config:?}");
    }
}

/// Everything is allowed but `rm`: a command that hides it is denied, or at least needs an approval.
const NO_RM: &str = "mode = \"full\"\ndeny = [\"bash(rm *)\"]";

#[test]
fn a_denied_program_is_seen_however_it_is_written() {
    check(
        NO_RM,
        true,
        &[
            (Deny, "rm x"),
            (Deny, "rm"),
            (Deny, "/bin/rm x"),
            (Deny, "../../bin/rm x"),
            (Deny, "\\rm x"),
            (Deny, "'r'm x"),
            (Deny, "r\"\"m x"),
            (Deny, "$'\\x72m' x"),
            (Deny, "$'\\162m' x"),
            (Deny, "r\\\nm x"),
            (Deny, "~/bin/rm x"),
            (Deny, "$HOME/bin/rm x"),
            (Deny, "*/rm x"),
            (Deny, "{ rm x; }"),
            (Ask, "{rm,x}"),
            (Ask, "r? x"),
            (Ask, "/bin/r[m] x"),
            (Ask, "$X x"),
            (Ask, "${X} x"),
            (Ask, "$(echo rm) x"),
            (Ask, "`echo rm` x"),
        ],
    );
}

#[test]
fn a_denied_program_is_seen_in_any_command() {
    check(
        NO_RM,
        true,
        &[
            (Deny, "ls; rm x"),
            (Deny, "ls && rm x"),
            (Deny, "ls || rm x"),
            (Deny, "ls | rm x"),
            (Deny, "ls |& rm x"),
            (Deny, "ls & rm x"),
            (Deny, "ls\nrm x"),
            (Deny, "(rm x)"),
            (Deny, "! rm x"),
            (Deny, "time rm x"),
            (Deny, "time -p rm x"),
            (Deny, "if true; then rm x; fi"),
            (Deny, "if rm x; then true; fi"),
            (Deny, "if true; then :; elif rm x; then :; else :; fi"),
            (Deny, "if true; then :; else rm x; fi"),
            (Deny, "for f in a b; do rm $f; done"),
            (Deny, "for f in $(rm x); do :; done"),
            (Deny, "for ((i = 0; i < 3; i++)); do rm x; done"),
            (Deny, "while read -r f; do rm \"$f\"; done < list"),
            (Deny, "until rm x; do :; done"),
            (Deny, "case x in x) rm y ;; esac"),
            (Deny, "case $(rm x) in *) ;; esac"),
            (Deny, "case x in (a|b) ls ;& *) rm y ;; esac"),
            (Deny, "select f in a; do rm x; done"),
            (Deny, "f() { rm x; }; f"),
            (Deny, "function f { rm x; }"),
            (Deny, "f() ( rm x )"),
        ],
    );
}

#[test]
fn a_denied_program_is_seen_in_any_expansion() {
    check(
        NO_RM,
        true,
        &[
            (Deny, "echo $(rm x)"),
            (Deny, "echo `rm x`"),
            (Deny, "echo `echo \\`rm x\\``"),
            (Deny, "echo \"$(rm x)\""),
            (Deny, "echo \"`rm x`\""),
            (Deny, "echo \"a $(echo \"b $(rm x)\")\""),
            (Deny, "echo ${x:-$(rm x)}"),
            (Deny, "echo \"${x:-$(rm x)}\""),
            (Deny, "echo ${x[$(rm x)]}"),
            (Deny, "echo $(( $(rm x) ))"),
            (Deny, "(( $(rm x) ))"),
            (Deny, "[[ -n $(rm x) ]]"),
            (Deny, "[[ a =~ $(rm x) ]]"),
            (Deny, "x=$(rm x)"),
            (Deny, "x=(a $(rm x))"),
            (Deny, "x[$(rm x)]=1"),
            (Deny, "cat <(rm x)"),
            (Deny, "ls > >(rm x)"),
            (Deny, "cat <<< $(rm x)"),
            (Deny, "cat <<E\n$(rm x)\nE"),
            (Deny, "cat <<-E\n\t`rm x`\n\tE"),
            (Deny, "cat <<A <<B\n$(rm x)\nA\nB"),
            (Deny, "ls > $(rm x)"),
            (Deny, "{ ls; } > $(rm x)"),
            (Deny, "echo $(true # )\nrm x)"),
            (Deny, "echo $(case x in x) rm y;; esac)"),
            (Ask, "x='a[$(rm y)]'; echo $((x))"),
            (Ask, "test -v 'a[$(rm y)]'"),
        ],
    );
}

#[test]
fn text_that_looks_like_a_command_is_none() {
    check(
        NO_RM,
        true,
        &[
            (Allow, "echo rm x"),
            (Allow, "echo 'rm x'"),
            (Allow, "echo \"\\$(rm x)\""),
            (Allow, "# rm x"),
            (Allow, "ls # ; rm x"),
            (Allow, "echo a#; echo rm"),
            (Allow, "cat <<'E'\n$(rm x)\nE"),
            (Allow, "cat <<E\nrm x\nE"),
            (Allow, "grep rm x"),
            (Allow, "git rm x"),
            (Allow, "rmdir x"),
            (Allow, "./rm.sh"),
            (Allow, "timeout 5 grep rm x"),
            (Allow, "echo \"it's $(date) and rm\""),
        ],
    );
}

#[test]
fn a_denied_program_is_seen_behind_wrappers() {
    check(
        NO_RM,
        true,
        &[
            (Deny, "command rm x"),
            (Deny, "command -p rm x"),
            (Deny, "builtin command rm x"),
            (Deny, "exec rm x"),
            (Deny, "exec -a ls rm x"),
            (Deny, "env rm x"),
            (Deny, "env -i A=b rm x"),
            (Deny, "env -u A -C /tmp rm x"),
            (Deny, "/usr/bin/env rm x"),
            (Ask, "env -S 'rm x'"),
            (Ask, "env $X rm x"),
            (Deny, "A=1 rm x"),
            (Deny, "nohup rm x &"),
            (Deny, "setsid -f rm x"),
            (Deny, "nice rm x"),
            (Deny, "nice -n 10 rm x"),
            (Deny, "nice -5 rm x"),
            (Deny, "ionice -c 3 rm x"),
            (Deny, "stdbuf -oL rm x"),
            (Deny, "timeout 5 rm x"),
            (Deny, "timeout -k 1 -s KILL 5 rm x"),
            (Deny, "timeout --signal=KILL 5 rm x"),
            (Ask, "timeout --odd 5 rm x"),
            (Deny, "/usr/bin/time -v rm x"),
            (Deny, "xargs rm"),
            (Deny, "xargs -0 -n 1 rm -f"),
            (Deny, "ls | xargs -I {} rm {}"),
            (Ask, "echo rm | xargs -I {} {} x"),
            (Ask, "xargs --odd rm"),
            (Deny, "sudo rm x"),
            (Deny, "sudo -u root -n rm x"),
            (Deny, "doas rm x"),
            (Deny, "busybox rm x"),
            (Deny, "toybox rm x"),
            (Deny, "watch -n 1 rm x"),
            (Deny, "watch -n 1 'ls; rm x'"),
            (Deny, "flock /tmp/l rm x"),
            (Deny, "flock /tmp/l -c 'rm x'"),
            (Deny, "find . -exec rm {} +"),
            (Deny, "find . -name x -execdir rm -f {} \\;"),
            (Deny, "find . -delete"),
            (Ask, "find . -exec {} \\;"),
            (Deny, "find . -exec sh -c 'rm x' \\;"),
        ],
    );
}

#[test]
fn a_denied_program_is_seen_in_scripts_within_scripts() {
    check(
        NO_RM,
        true,
        &[
            (Deny, "sh -c 'rm x'"),
            (Deny, "bash -c \"rm x\""),
            (Deny, "bash -euo pipefail -c 'ls; rm x'"),
            (Deny, "bash -lc 'bash -c \"bash -c \\\"rm x\\\"\"'"),
            (Deny, "/bin/dash -c 'rm x'"),
            (Deny, "zsh -c 'rm x'"),
            (Ask, "sh -c \"$X\""),
            (Ask, "echo rm x | sh"),
            (Ask, "bash <<< 'rm x'"),
            (Ask, "bash -s < x.sh"),
            (Ask, "echo rm x | sh -"),
            (Ask, "echo rm x | bash /dev/stdin"),
            (Ask, "bash <(echo rm x)"),
            (Ask, "nice -n $X ls"),
            (Ask, "sh -c \"$'a\\\\'; rm x #'\""),
            (Deny, "eval rm x"),
            (Deny, "eval 'ls; rm x'"),
            (Deny, "eval eval 'eval rm x'"),
            (Ask, "eval \"$X\""),
            (Deny, "trap 'rm x' EXIT"),
            (Deny, "git bisect run rm x"),
            (Deny, "git rebase --exec 'rm x' main"),
            (Deny, "git submodule foreach 'rm x'"),
            (Deny, "env A=1 nohup timeout 5 sh -c 'nice xargs rm' &"),
            (Ask, "parallel rm ::: a b"),
        ],
    );
}

#[test]
fn what_bash_would_refuse_or_read_in_its_own_way_is_asked_about() {
    check(
        NO_RM,
        true,
        &[
            (Ask, "ls )"),
            (Ask, "ls | ! rm x"),
            (Ask, "ls 'x"),
            (Ask, "cat <<E\nx"),
            (Ask, "((rm x); (ls))"),
            (Ask, "echo ${ rm x; }"),
            (Ask, "echo ${x@P}"),
            (Deny, "rm x; )"),
            (Ask, "a[1 <<E ]=2\nrm x\nE"),
            (Ask, "[[ a =~ (x #y) ]]\nls\n[[ b ]]"),
        ],
    );
}

#[test]
fn words_are_compared_one_by_one() {
    check(
        r#"mode = "read-only"
        allow = ["bash(git status *)", "bash(cargo test)", "bash(ls -*)", "bash(make * all)",
                 "bash(./run.sh *)", "bash(grep 'a b' *)"]"#,
        true,
        &[
            (Allow, "git status"),
            (Allow, "git status --short"),
            (Allow, "'git' \"status\""),
            (Allow, "git status && git status -s"),
            (Allow, "git status $X"),
            (Allow, "git --no-pager status"),
            (Allow, "git -C crates status"),
            (Deny, "git -C /elsewhere status"),
            (Deny, "git"),
            (Deny, "git statusx"),
            (Deny, "git status-x"),
            (Deny, "git $X status"),
            (Deny, "git status; ls"),
            (Deny, "git status $(ls)"),
            (Deny, "/usr/bin/git status"),
            (Deny, "./git status"),
            (Deny, "git status > x"),
            (Allow, "git status > /dev/null 2>&1"),
            (Allow, "cargo test"),
            (Deny, "cargo test --release"),
            (Deny, "cargo test $X"),
            (Allow, "timeout 60 cargo test"),
            (Allow, "env A=1 cargo test"),
            (Deny, "env LD_PRELOAD=x cargo test"),
            (Deny, "LD_PRELOAD=x cargo test"),
            (Deny, "xargs cargo test"),
            (Allow, "xargs git status"),
            (Allow, "sh -c 'cargo test; git status'"),
            (Deny, "sudo cargo test"),
            (Allow, "ls -la"),
            (Deny, "ls -l -a"),
            (Deny, "ls"),
            (Allow, "make x all"),
            (Allow, "make \"$x\" all"),
            (Deny, "make $x all"),
            (Allow, "./run.sh fast"),
            (Deny, "run.sh fast"),
            (Allow, "grep 'a b' c"),
            (Deny, "grep a b"),
        ],
    );
}

#[test]
fn the_strictest_rule_decides() {
    check(
        r#"allow = ["bash(git *)"]
        ask = ["bash(git push *)", "bash(curl *)"]
        deny = ["bash(git push --force *)", "bash(git push -f *)"]"#,
        false,
        &[
            (Allow, "git status"),
            (Ask, "git push"),
            (Ask, "git push origin main"),
            (Ask, "git --no-pager push"),
            (Ask, "git -c a.b=c push"),
            (Deny, "git push --force"),
            (Deny, "git push -f origin"),
            (Ask, "git $X"),
            (Ask, "git push $X"),
            (Ask, "curl https://example.org"),
            (Ask, "/usr/bin/curl x"),
            (Deny, "git status; git push --force; curl x"),
        ],
    );
}

#[test]
fn in_the_sandbox_commands_run() {
    check(
        "",
        true,
        &[
            (Allow, "cargo build"),
            (Allow, "curl https://example.org"),
            (Allow, "python3 -c 'print(1)'"),
            (Allow, "rm -rf target"),
            (Allow, "echo x > out.txt"),
            (Allow, "echo x > /tmp/out.txt"),
            (Allow, "echo x > \"$OUT\""),
            (Allow, "FOO=1 make"),
            (Allow, "RUST_LOG=debug cargo run"),
            (Allow, "cd crates/core && cargo test 2>&1 | tail -n 5"),
            (Allow, "for f in *.rs; do wc -l \"$f\"; done"),
            (Allow, "set -euo pipefail; make"),
            (Allow, "f() { ls; }; f"),
            (Allow, "git log --grep 'Größe – fertig'"),
            (Allow, "i=0; while (( i < 3 )); do ((i++)); done"),
            (Allow, "if [ \"$(id -u)\" = 0 ]; then echo root; fi"),
            (Allow, "cat > x.sh <<'E'\nif [ \"$(id)\" ]; then arr[$(x)]=1; fi\nE"),
            (Allow, "export FOO=bar"),
            (Allow, "exec > log.txt"),
            (Allow, "sed -i s/a/b/ x"),
            (Allow, ""),
        ],
    );
}

#[test]
fn what_is_risky_is_asked_about_in_the_sandbox_too() {
    check(
        "",
        true,
        &[
            (Deny, "echo x > .git/config"),
            (Deny, "echo x >> .antiphon/antiphon.toml"),
            (Deny, "echo x > /home/me/project/.git/hooks/pre-commit"),
            (Deny, "echo x | tee .git/config"),
            (Deny, "cd crates; echo x > ../.git/config"),
            (Deny, "cd .git && echo x > config"),
            (Ask, "cd .git; cd ..; echo x > config"),
            (Ask, "sudo ls"),
            (Ask, "doas ls"),
            (Ask, "su -c ls"),
            (Ask, "ssh host ls"),
            (Ask, "source .venv/bin/activate"),
            (Ask, ". ./env.sh"),
            (Ask, "eval \"$CMD\""),
            (Ask, "$CMD"),
            (Ask, "LD_PRELOAD=./x.so ls"),
            (Ask, "PATH=.:$PATH ls"),
            (Ask, "PATH=."),
            (Ask, "export PATH=."),
            (Ask, "declare -x PATH=."),
            (Ask, "read PATH"),
            (Ask, "printf -v PATH ."),
            (Ask, "for PATH in a; do ls; done"),
            (Ask, "echo ${PATH:=.}"),
            (Ask, "BASH_ENV=x sh -c ls"),
            (Ask, "GIT_SSH_COMMAND=x git fetch"),
            (Ask, "env GIT_PAGER=x git log"),
            (Allow, "GIT_AUTHOR_NAME=x git log"),
            (Ask, "alias ls=rm"),
            (Ask, "enable -n test"),
            (Ask, "shopt -s extglob"),
            (Ask, "trap ls EXIT"),
            (Ask, "hash -p /bin/rm ls"),
            (Ask, "set -k"),
            (Ask, "set -o posix"),
            (Ask, "ls() { rm x; }; ls"),
            (Ask, "function git { rm x; }"),
            (Ask, "declare -n r=PATH"),
            (Ask, "mapfile -C rm x"),
            (Ask, "mapfile $option rm x"),
            (Allow, "mapfile -t x < y"),
            (Ask, "jobs -x rm x"),
            (Ask, "jobs $option rm x"),
            (Allow, "jobs -l"),
            (Ask, "chronic rm x"),
            (Ask, "git -c core.pager=x log"),
            (Ask, "git -c user.name=a -c core.pager=x log"),
            (Allow, "git -c color.ui=never log"),
            (Ask, "git --exec-path=. log"),
            (Ask, "git config core.hooksPath x"),
            (Ask, "git clone --upload-pack=x y"),
            (Ask, "git clone 'ext::sh -c x' y"),
            (Ask, "bash -O extglob -c ls"),
            (Ask, "bash --rcfile x -c ls"),
            (Ask, "coproc ls"),
            (Ask, "ls \u{200b}x"),
            (Ask, "ls\u{a0}x"),
            (Ask, "echo \u{202e}x"),
            (Ask, "l\u{455} x"),
            (Ask, "rm \u{2013}rf x"),
            (Ask, "ls \u{1b}[2K"),
            (Ask, "ls x\r\nls y"),
            (Ask, "ls \0 x"),
        ],
    );
}

#[test]
fn without_a_sandbox_only_what_looks_is_allowed() {
    check(
        "",
        false,
        &[
            (Allow, "ls -la src"),
            (Allow, "cat Cargo.toml | head -n 5"),
            (Allow, "grep -rn foo src && wc -l src/*.rs"),
            (Allow, "find . -name '*.rs' -type f"),
            (Allow, "cd crates && pwd"),
            (Allow, "echo done > out.txt"),
            (Allow, "timeout 5 cat x"),
            (Ask, "cargo build"),
            (Ask, "git status"),
            (Ask, "cat /etc/passwd"),
            (Ask, "cat ../secret"),
            (Ask, "cat ~/.ssh/id_rsa"),
            (Ask, "cat $X"),
            (Ask, "cat < /etc/passwd"),
            (Ask, "cd; cat .ssh/id_rsa"),
            (Ask, "cd - && cat x"),
            (Ask, "echo x > /tmp/x"),
            (Ask, "echo x > $X"),
            (Ask, "echo x > /dev/tcp/example.org/80"),
            (Ask, "find . -exec cat {} +"),
            (Ask, "find . -delete"),
            (Ask, "find . -fprint x"),
            (Ask, "find / -name x"),
            (Ask, "sort -o x y"),
            (Ask, "sort --out=x y"),
            (Ask, "uniq a b"),
            (Ask, "rg --pre x y"),
            (Ask, "./cat x"),
            (Ask, "xargs cat"),
            (Ask, "printf -v x y"),
            (Deny, "echo x > .git/config"),
        ],
    );
}

#[test]
fn modes_without_rules() {
    check("mode = \"read-only\"", true, &[(Deny, "ls"), (Deny, ""), (Deny, "$X"), (Deny, "> x")]);
    check(
        "mode = \"full\"",
        false,
        &[
            (Allow, "rm -rf /"),
            (Allow, "sudo reboot"),
            (Allow, "eval \"$X\""),
            (Allow, "ls )"),
            (Deny, "echo > .git/config"),
        ],
    );
}

#[test]
fn redirections_are_reading_and_writing() {
    check(
        r#"mode = "full"
        deny = ["write(.env)", "write(/etc/**)", "read(secret/**)"]
        ask = ["write(docs/**)"]"#,
        true,
        &[
            (Deny, "echo x > .env"),
            (Deny, "echo x >> ./.env"),
            (Deny, "echo x >| src/../.env"),
            (Deny, "echo x &> .env"),
            (Deny, "echo x >& .env"),
            (Deny, "echo x 2> '.env'"),
            (Deny, "> .env"),
            (Deny, "{ ls; } > .env"),
            (Deny, "while :; do ls; done > .env"),
            (Deny, "cd src; echo x > ../.env"),
            (Ask, "false && cd src; echo x > .env"),
            (Ask, "cd $X; echo x > out"),
            (Ask, "env -C src sh -c 'echo x > out'"),
            (Ask, "find . -execdir sh -c 'echo x > out' \\;"),
            (Ask, "echo x > $X"),
            (Deny, "echo x | tee -a .env"),
            (Deny, "find . -fprint .env"),
            (Deny, "echo x > /etc//passwd"),
            (Deny, "cat < secret/key"),
            (Deny, "cat <> secret/key > .env"),
            (Ask, "echo x > docs/a.md"),
            (Allow, "echo x > .env.example"),
            (Allow, "echo x > sub/.env"),
            (Allow, "echo x 2>&1"),
            (Allow, "echo x > /dev/null"),
            (Allow, "cat .env"),
            (Ask, "eval \"$X\""),
        ],
    );
}

#[test]
fn files_are_compared_by_whole_components() {
    let gate = gate(
        r#"allow = ["read(/opt/data/**)"]
        ask = ["edit(Cargo.toml)"]
        deny = ["write(src/gen/**)", "read(.env*)", "grep(vendor/**)", "write(a[0-9].txt)"]"#,
    );
    let cases = [
        (Allow, "write", "src/a.rs"),
        (Allow, "write", "/home/me/project/src/a.rs"),
        (Deny, "write", "src/gen/a.rs"),
        (Deny, "write", "src//gen/./a.rs"),
        (Deny, "write", "src/../src/gen/x/a.rs"),
        (Deny, "write", "/home/me/project/src/gen/a.rs"),
        (Deny, "edit", "src/gen/a.rs"),
        (Allow, "write", "src/generated/a.rs"),
        (Allow, "write", "x/src/gen/a.rs"),
        (Deny, "write", "a1.txt"),
        (Allow, "write", "ab.txt"),
        (Deny, "read", ".env"),
        (Deny, "read", ".env.local"),
        (Allow, "read", "sub/.env"),
        (Deny, "grep", ".env"),
        (Deny, "grep", "vendor/x"),
        (Allow, "read", "vendor/x"),
        (Ask, "edit", "Cargo.toml"),
        (Allow, "write", "Cargo.toml"),
        (Ask, "write", "/etc/passwd"),
        (Ask, "write", "../other/x"),
        (Ask, "read", "/etc/passwd"),
        (Allow, "read", "/opt/data/x/y"),
        (Ask, "read", "/opt/database"),
        (Ask, "read", "/home/me/project2/x"),
        (Deny, "write", ".git/config"),
        (Deny, "write", ".git"),
        (Deny, "write", "sub/.git/hooks/x"),
        (Deny, "write", ".GIT/config"),
        (Deny, "edit", ".antiphon/antiphon.toml"),
        (Deny, "write", "x/../.ideai/requests/a.json"),
        (Allow, "write", ".github/workflows/ci.yml"),
        (Allow, "write", ".gitignore"),
        (Allow, "read", ".git/config"),
        (Allow, "glob", "."),
    ];
    for (expected, tool, path) in cases {
        assert_eq!(file(&gate, tool, path), expected, "{tool} {path}");
    }
}

#[test]
fn a_script_begins_in_the_folder_it_is_given() {
    let gate = gate("deny = [\"write(src/a.rs)\"]");
    let cases = [
        (Deny, "echo > a.rs", "src"),
        (Deny, "echo > a.rs", "/home/me/project/src/"),
        (Deny, "echo > ../a.rs", "src/b"),
        (Allow, "echo > a.rs", "lib"),
        (Allow, "echo > a.rs", ""),
        (Deny, "echo > config", ".git"),
        (Deny, "cd hooks && echo > x", ".git"),
        (Ask, "ls", ".."),
        (Ask, "ls", "/"),
        (Deny, "echo > /home/me/project/.git/config", "/"),
        (Deny, "echo > /home/me/project/src/a.rs", "/"),
        (Allow, "ls", "src/.."),
    ];
    for (expected, script, folder) in cases {
        let arguments = serde_json::json!({ "command": script, "workdir": folder }).to_string();
        let explanation = explain(&gate, "bash", &arguments, &[]);
        assert_eq!(explanation.decision(), expected, "{script} in {folder}: {explanation}");
    }
}
