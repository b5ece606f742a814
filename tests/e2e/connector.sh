#!/bin/sh
# A worker of the connector, by hand: the walk of its document with curl, from registration to the last word. It knows the
# base URL and nothing else: no token, no fence, nothing that is stint's own. Each answer is one line.
set -eu

BASE="$1/api/v1/worker/orchestrator"
WORKER="${2:-claude-code-session-abc123}"
VTID="${3:-VTID-01180}"

say() { # METHOD PATH [BODY]
	if [ $# -gt 2 ]; then
		curl -sS -X "$1" "$BASE$2" -H 'Content-Type: application/json' -d "$3"
	else
		curl -sS -X "$1" "$BASE$2"
	fi
	echo
}

progress() { # EVENT MESSAGE
	say POST "/tasks/$VTID/progress" "{
	  \"worker_id\": \"$WORKER\",
	  \"event\": \"$1\",
	  \"message\": \"$2\",
	  \"metadata\": { \"files_changed\": 3, \"lines_added\": 150 }
	}"
}

say POST /register "{
  \"worker_id\": \"$WORKER\",
  \"capabilities\": [\"typescript\", \"react\", \"node\"],
  \"max_concurrent\": 1
}"
say GET /tasks/pending
say POST "/tasks/$VTID/claim" "{ \"worker_id\": \"$WORKER\" }"
say POST /heartbeat "{ \"worker_id\": \"$WORKER\", \"active_vtid\": \"$VTID\" }"
progress worker.execution.started "Worker begins execution"
progress worker.building "Implementing API endpoints"
progress worker.pr.created "PR opened"
progress worker.execution.completed "Work done, ready for validation"
say POST "/tasks/$VTID/release" "{ \"worker_id\": \"$WORKER\" }"
