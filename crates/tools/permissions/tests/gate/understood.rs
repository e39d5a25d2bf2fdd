//! Scripts as users and models write them: a gate that cannot parse them asks too often.

use serde_json::json;

use crate::world::{explain, gate};

const SCRIPTS: &[&str] = &[
    "git log --oneline -n 20 | head -5 && git diff --stat HEAD~3..HEAD -- 'src/*.rs'",
    "cargo test -p antiphon-core --no-fail-fast 2>&1 | tee /tmp/out.log | grep -E '^test .*FAILED' || true",
    "for f in $(git ls-files '*.rs'); do\n  n=$(wc -l < \"$f\")\n  if [ \"$n\" -gt 400 ]; then echo \"$n $f\"; fi\ndone | sort -rn",
    "while IFS= read -r line; do printf '%s\\n' \"${line%%,*}\"; done < data.csv",
    "find . -type f \\( -name '*.o' -o -name '*.tmp' \\) -print0 | xargs -0 -r rm -f --",
    "cat > config.json <<'EOF'\n{\"a\": \"$(not run)\", 'b': `nor this`}\nEOF\npython3 -m json.tool config.json",
    "cat <<-EOF > x.txt\n\tHello ${USER:-you}, it is $(date +%F).\n\tEOF",
    "set -euo pipefail\ncd \"$(git rev-parse --show-toplevel)\"\nmkdir -p build && (cd build && cmake .. -DCMAKE_BUILD_TYPE=Release)",
    "case \"$(uname -s)\" in\n  Linux) os=linux ;;\n  Darwin|FreeBSD) os=bsd ;;\n  *) echo \"unknown: $(uname -s)\" >&2; exit 1 ;;\nesac\necho \"$os\"",
    "files=(src/*.rs tests/*.rs)\nfor f in \"${files[@]}\"; do echo \"${f##*/}: ${#f}\"; done\necho \"${#files[@]} files\"",
    "if [[ $1 =~ ^v([0-9]+)\\.([0-9]+)$ && -n ${BASH_REMATCH[1]} ]]; then echo \"${BASH_REMATCH[1]}\"; fi",
    "i=0; until curl -fsS http://localhost:7117/health >/dev/null; do ((i++ < 10)) || exit 1; sleep 1; done",
    "docker run --rm -v \"$PWD\":/work -w /work rust:1 bash -c 'cargo build && cargo test'",
    "awk '{ sum += $2 } END { print sum / NR }' results.txt; sed -n '10,20p' x.c",
    "echo \"total: $(( $(wc -l < a) + $(wc -l < b) ))\"; echo $((1 << 4)) $(( (1+2) * 3 ))",
    "diff <(sort a.txt) <(sort b.txt) | grep '^[<>]' | wc -l",
    "npm ci && npm run build -- --mode=production; status=$?; echo \"exit $status\"; exit $status",
    "jq -r '.items[] | select(.name | test(\"^a\")) | \"\\(.name)\\t\\(.id)\"' < x.json",
    "python3 - <<'PY'\nimport sys\nprint(\"it's\", sys.argv)\nPY",
    "usage() { echo \"usage: $0 [-v] FILE\" >&2; }\nwhile getopts 'vh' opt; do case $opt in v) v=1;; *) usage;; esac; done\nshift $((OPTIND - 1))",
    "trap=$(mktemp -d); tar -xzf x.tgz -C \"$trap\" && ls -la \"$trap\" # look at it\nrm -rf -- \"$trap\"",
    "grep -rn \"TODO\\|FIXME\" --include='*.ts' . | awk -F: '{print $1}' | sort | uniq -c | sort -rn | head",
    "git commit -m \"Fix the parser\n\nIt's now able to read \\\"quotes\\\" and \\`ticks\\`.\"",
    "printf '%s\\n' {1..3} a{b,c}d | while read -r x; do echo \"<$x>\"; done",
    "[ -f Makefile ] && make -j\"$(nproc)\" all || { echo 'no Makefile' >&2; exit 1; }",
    "time cargo bench --bench parse -- --save-baseline main 2>/dev/null",
    "(( total = ${a:-0} + ${b:-0} )); echo \"${total}\" \"${name^^}\" \"${path//\\//_}\" \"${x:1:3}\"",
    "ps aux | awk '$3 > 50.0 {print $2}' | xargs -r -n1 kill -0 2>&1 | cat -A",
    "exec 3>&1; out=$(make 2>&1 1>&3 | tail -n 3); exec 3>&-; echo \"$out\"",
    "curl -sS -X POST -H 'Content-Type: application/json' -d \"{\\\"a\\\": \\\"$x\\\"}\" http://localhost/",
];

#[test]
fn everyday_scripts_are_parsed() {
    let gate = gate("mode = \"workspace\"");
    for script in SCRIPTS {
        let explanation = explain(&gate, "bash", &json!({ "command": script }).to_string(), &[]);
        let unclear =
            explanation.findings.iter().find(|found| found.because.contains("cannot be parsed"));
        assert_eq!(unclear, None, "{script}\n{explanation}");
    }
}
