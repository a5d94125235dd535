# Functions for the shell that runs a page. They start the services that the page expects.
# Before this file is sourced, $work must be a temporary folder, and $PWD a clone that is built.
set -Eeuo pipefail
shopt -s inherit_errexit
real_curl=$(command -v curl)
export PATH="$work/bin:$PATH:/usr/sbin"
# Runs the real curl. Pages call the wrapper below, which also checks the status.
raw_curl() { "$real_curl" "$@"; }
# Records the first failure and its line, also for background jobs.
trap 'status=$?; echo "${BASH_LINENO[0]:-} $LINENO ${BASH_SOURCE[0]##*/} $status" >>"$work/failed"' ERR

mkdir -p "$work/bin"
printf '#!/bin/sh\nexec node %q/dist/cli.js "$@"\n' "$PWD" >"$work/bin/peage"
cat >"$work/bin/curl" <<'SH'
#!/bin/bash
# Runs the real curl, and fails if the status is not the status that the page expects.
PATH=${PATH#*:}
if [ -z "${EXPECTED_STATUS:-}" ]; then exec curl --fail-with-body --max-time 20 "$@"; fi
answer=$(mktemp)
status=$(curl --max-time 20 -o "$answer" -w '%{http_code}' "$@")
cat "$answer"
rm "$answer"
[ "$status" = "$EXPECTED_STATUS" ] || { echo "status $status, not $EXPECTED_STATUS" >&2; exit 22; }
SH
# Runs a Python that can import jwt, if the machine has one.
cat >"$work/bin/python3" <<'SH'
#!/bin/sh
PATH=${PATH#*:}
for python in python3 /usr/bin/python3; do
  $python -c 'import jwt' 2>/dev/null && exec $python "$@"
done
exec python3 "$@"
SH
chmod +x "$work"/bin/*

wait_for() {
  for _ in $(seq 150); do "$@" >/dev/null 2>&1 && return; sleep 0.1; done
  echo "not ready after 15 s: $*" >&2
  return 1
}

start_postgres() {
  local bin user=postgres
  bin=$(dirname "$(command -v initdb || ls -d /usr/lib/postgresql/*/bin/initdb | tail -1)")
  export PATH="$PATH:$bin"
  id postgres >/dev/null 2>&1 || user=nobody
  mkdir -p "$work/postgres"
  chmod 755 "$work"
  chown "$user" "$work/postgres"
  local as=()
  [ "$(id -u)" != 0 ] || as=(setpriv --reuid "$user" --regid "$(id -g "$user")" --clear-groups)
  (cd "$work/postgres" && "${as[@]}" "$bin/initdb" -D data -U peage --auth=trust -E UTF8 --locale=C --no-sync >/dev/null)
  (cd "$work/postgres" && exec "${as[@]}" "$bin/postgres" -D data -c fsync=off -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= >"$work/postgres.log" 2>&1) &
  wait_for psql -h 127.0.0.1 -U peage -d postgres -c 'select 1'
  createdb -h 127.0.0.1 -U peage peage
  export DATABASE_URL=postgres://peage@127.0.0.1:5432/peage
}

start_redis() {
  redis-server --port 6379 --bind 127.0.0.1 --save '' --appendonly no --dir "$work" >/dev/null &
  wait_for redis-cli ping
  export REDIS_URL=redis://127.0.0.1:6379
}

# Starts an upstream at 127.0.0.1:9000 that shows the user of each request.
start_upstream() {
  HOST=127.0.0.1 PORT=9000 node demo/serve-upstream.mjs &
  wait_for raw_curl -s http://127.0.0.1:9000/
}

# Starts the gateway with the file $1 (default: the sample gateway.yaml).
start_gateway() {
  export PEAGE_ADMIN_TOKEN=an-admin-token-0123456789 PEAGE_KEY_SECRET=a-key-secret-0123456789
  node dist/cli.js start -c "${1:-gateway.yaml}" >"$work/gateway.log" &
  gateway=$!
  wait_for raw_curl -sf http://127.0.0.1:8081/readyz
}

stop_gateway() {
  kill "$gateway"
  wait "$gateway" || true
}

# Registers ada@example.com as user 1 with plan $1 (default: pro), and sets $ACCESS_TOKEN and $REFRESH_TOKEN.
sign_in() {
  local api=http://127.0.0.1:8080/api/v1 body='{"email":"ada@example.com","password":"correct horse battery"}' pair
  raw_curl -s "$api/auth/register" -d "$body" >/dev/null
  raw_curl -sf -X PATCH http://127.0.0.1:8081/admin/v1/users/1 -H "Authorization: Bearer $PEAGE_ADMIN_TOKEN" \
    -d "{\"plan\":\"${1:-pro}\"}" >/dev/null
  pair=$(raw_curl -sf "$api/auth/login" -d "$body")
  ACCESS_TOKEN=$(node -p 'JSON.parse(process.argv[1]).access_token' "$pair")
  REFRESH_TOKEN=$(node -p 'JSON.parse(process.argv[1]).refresh_token' "$pair")
  export ACCESS_TOKEN REFRESH_TOKEN
}
