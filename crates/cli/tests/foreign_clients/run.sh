# run.sh CLIENTS ANTIPHON FOLDER: Codex CLI and Claude Code each read a file, edit it and run a command through a server.
# Runs in a network namespace of its own: only the loopback exists.
set -e
ip link set lo up
clients=$1 antiphon=$2 folder=$3
cd "$folder"
mkdir -p work project home/.codex
export HOME=$folder/home ANTIPHON_CONFIG=$folder/config.toml XDG_STATE_HOME=$folder/state
(cd project && exec "$antiphon" serve --listen 127.0.0.1:7991 >"$folder/serve.log" 2>&1) &
server=$!
trap 'kill $server' EXIT
for _ in $(seq 80); do
    curl -s -o /dev/null http://127.0.0.1:7991/health && break
    sleep 0.25
done
TOKEN=$(cd project && "$antiphon" token)
export TOKEN CODEX_HOME=$HOME/.codex
cd work
echo "old line" >notes.txt
timeout 60 "$clients"/node_modules/@openai/codex-linux-x64/vendor/*/bin/codex exec --skip-git-repo-check \
    --sandbox danger-full-access "change the notes" </dev/null
echo "codex: $(cat notes.txt)"
echo "old line" >notes.txt
export ANTHROPIC_BASE_URL=http://127.0.0.1:7991 ANTHROPIC_API_KEY=$TOKEN
export DISABLE_TELEMETRY=1 DISABLE_ERROR_REPORTING=1 DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
timeout 60 "$clients"/node_modules/@anthropic-ai/claude-code-linux-x64/claude -p "change the notes" \
    --model claude-sonnet-4-5 --allowedTools Read,Edit,Bash --permission-mode acceptEdits </dev/null
echo "claude: $(cat notes.txt)"
