/*
 * What is asked at the doors of older systems, and at routes without a test of their own: request, what the rules say of its
 * command, status, and a part of the reply. Each row is a sentence of the dialogue.
 */
#include "api_fixture.h"

#define CONN     "/api/v1/worker/orchestrator/"
#define SESSIONS "/api/sessions"
#define BEATS    "/api/heartbeats"
#define ITEMS    "/api/workqueue/"
#define TASKS    "/api/tasks"

/* 66,000 letters: more than metadata or data may have. */
#define TEN(x) x x x x x x x x x x
#define LONG   TEN(TEN(TEN("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")))

struct said {
	enum http_method method;
	const char *url, *body;
	enum task_state task;
	enum refusal refusal; /* of its commands */
	int status;
	const char *part; /* of the reply */
};

// clang-format off
static const struct said connector[] = {
	{HTTP_METHOD_POST, CONN "register", NULL, TASK_READY, REFUSED_NOTHING, 400, "\"error\":\"worker_id is required\""},
	{HTTP_METHOD_POST, CONN "register", "{\"worker_id\":\"\"}", TASK_READY, REFUSED_NOTHING, 400, "worker_id is required"},
	{HTTP_METHOD_POST, CONN "register", "{\"worker_id\":null}", TASK_READY, REFUSED_NOTHING, 400, "worker_id is required"},
	{HTTP_METHOD_POST, CONN "register", "{\"worker_id\":5}", TASK_READY, REFUSED_NOTHING, 400, "worker_id must be"},
	{HTTP_METHOD_POST, CONN "register", "[]", TASK_READY, REFUSED_NOTHING, 400, "must be a JSON object"},
	{HTTP_METHOD_POST, CONN "register", "{", TASK_READY, REFUSED_NOTHING, 400, "is not JSON"},
	{HTTP_METHOD_POST, CONN "register", "{\"worker_id\":\"w\",\"max_concurrent\":0}", TASK_READY, REFUSED_NOTHING, 400, "max_concurrent must be"},
	{HTTP_METHOD_POST, CONN "register", "{\"worker_id\":\"w\",\"max_concurrent\":0,\"version\":7}", TASK_READY, REFUSED_NOTHING, 400, "\"error\":\"max_concurrent must be"},
	{HTTP_METHOD_POST, CONN "register", "{\"worker_id\":\"w\",\"metadata\":[1]}", TASK_READY, REFUSED_NOTHING, 400, "metadata must be"},
	{HTTP_METHOD_POST, CONN "register", "{\"worker_id\":\"w\",\"capabilities\":\"x\"}", TASK_READY, REFUSED_NOTHING, 400, "capabilities must be"},
	{HTTP_METHOD_POST, CONN "register", "{\"worker_id\":\"w\",\"colour\":\"red\"}", TASK_READY, REFUSED_NOTHING, 200, "\"registered\":true"},
	{HTTP_METHOD_POST, CONN "register", "{\"worker_id\":\"w1\",\"version\":\"2\",\"metadata\":{}}", TASK_READY, REFUSED_NOTHING, 200, "\"reregistered\":true"},
	{HTTP_METHOD_POST, CONN "register", "{\"worker_id\":\"w1\",\"version\":\"2\",\"metadata\":{\"a\":1}}", TASK_READY, REFUSED_NOTHING, 200, "\"registered\":true"},
	{HTTP_METHOD_DELETE, CONN "register/w1", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"unregistered\":true"},
	{HTTP_METHOD_POST, CONN "heartbeat", "{\"worker_id\":\"nobody\"}", TASK_READY, REFUSED_NOTHING, 400, "\"error\":\"Worker not registered\""},
	{HTTP_METHOD_POST, CONN "heartbeat", "{\"worker_id\":\"plain\"}", TASK_READY, REFUSED_NOTHING, 400, "Worker not registered"},
	{HTTP_METHOD_POST, CONN "heartbeat", "{\"worker_id\":\"w1\"}", TASK_READY, REFUSED_NOTHING, 200, "\"current_vtid\":\"t-1\""},
	{HTTP_METHOD_POST, CONN "heartbeat", "{\"worker_id\":\"w1\",\"active_vtid\":\"t-1\"}", TASK_READY, REFUSED_NOTHING, 200, "\"current_vtid\":\"t-1\""},
	{HTTP_METHOD_POST, CONN "tasks/t-1/progress", "{\"worker_id\":\"w\"}", TASK_READY, REFUSED_NOTHING, 400, "event is required"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/progress", "{\"worker_id\":\"w\",\"event\":\"x\",\"fence\":\"a\"}", TASK_READY, REFUSED_NOTHING, 400, "fence must be"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/progress", "{\"worker_id\":\"w\",\"event\":\"x\",\"fence\":\"3\",\"message\":\"m\"}", TASK_READY, REFUSED_NOTHING, 200, "\"event\":\"x\""},
	{HTTP_METHOD_POST, CONN "tasks/%01/progress", "{\"worker_id\":\"w\",\"event\":\"x\"}", TASK_READY, REFUSED_NOTHING, 404, "Task not found"},
	{HTTP_METHOD_POST, CONN "tasks/%01/claim", "{\"worker_id\":\"w\"}", TASK_READY, REFUSED_NOTHING, 404, "\"reason\":\"Task not found\""},
	{HTTP_METHOD_POST, CONN "tasks/%01/release", "{\"worker_id\":\"w\"}", TASK_READY, REFUSED_NOTHING, 404, "\"released\":false"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{}", TASK_READY, REFUSED_NOTHING, 400, "\"claimed\":false,\"reason\":\"worker_id is required\""},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\",\"expires_minutes\":0}", TASK_READY, REFUSED_NOTHING, 400, "expires_minutes must be"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\",\"expires_minutes\":5}", TASK_READY, REFUSED_NOTHING, 200, "\"claimed\":true"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/release", "{\"worker_id\":\"w\"}", TASK_READY, REFUSED_NOTHING, 200, "\"reason\":\"completed\""},
	{HTTP_METHOD_POST, CONN "tasks/t-1/release", "{\"worker_id\":\"w\",\"reason\":\"later\"}", TASK_READY, REFUSED_NOTHING, 200, "\"reason\":\"later\""},
	{HTTP_METHOD_GET, CONN "tasks/pending", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"count\":4"},
	{HTTP_METHOD_GET, CONN "tasks/pending?limit=2&worker_id=w1", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"worker_id\":\"w1\""},
	{HTTP_METHOD_GET, CONN "tasks/pending?limit=1", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"count\":1"},
	{HTTP_METHOD_GET, CONN "tasks/pending?limit=-4", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"count\":1"},
	{HTTP_METHOD_GET, CONN "tasks/pending?limit=0", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"count\":4"},
	{HTTP_METHOD_GET, CONN "tasks/pending?limit=many", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"count\":4"},
	{HTTP_METHOD_GET, CONN "tasks/pending?limit=100000", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"count\":4"},
	{HTTP_METHOD_GET, CONN "tasks/pending?limit=%zz&worker_id=%01", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"worker_id\":null"},
	{HTTP_METHOD_GET, CONN "tasks/pending?worker_id=nobody", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"worker_id\":\"nobody\""},
	{HTTP_METHOD_GET, CONN "workers", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"worker_id\":\"w1\""},
	{HTTP_METHOD_GET, CONN "stats", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"pending_tasks\":4"},
	{HTTP_METHOD_GET, CONN "health", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"status\":\"healthy\""},
	{HTTP_METHOD_PUT, CONN "health", NULL, TASK_READY, REFUSED_NOTHING, 405, "\"ok\":false"},
	{HTTP_METHOD_GET, CONN "nothing", NULL, TASK_READY, REFUSED_NOTHING, 404, "\"error_code\":\"not_found\""},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", TASK_CLAIMED, REFUSED_NOT_FOUND, 404, "\"reason\":\"Task not found\""},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", TASK_CLAIMED, REFUSED_CLAIMED_BY_OTHER, 409, "\"claimed_by\":\"w1\""},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", TASK_CLAIMED, REFUSED_ALREADY_TERMINAL, 409, "Task is already terminal"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", TASK_CLAIMED, REFUSED_BAD_TRANSITION, 409, "Task is not waiting for a worker"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", TASK_CLAIMED, REFUSED_WORKER_FULL, 409, "max_concurrent allows"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", TASK_CLAIMED, REFUSED_QUEUE_PAUSED, 409, "queue that is paused"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", TASK_CLAIMED, REFUSED_STALE_CLAIM, 409, "earlier claim"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", TASK_CLAIMED, REFUSED_EXECUTION_DISARMED, 403, "disarmed"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", TASK_CLAIMED, REFUSED_NOT_AUTONOMOUS, 409, "autonomous_execution"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", TASK_CLAIMED, REFUSED_WORKER_INACTIVE, 410, "come back under a new one"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", TASK_CLAIMED, REFUSED_FORBIDDEN, 403, "\"error_code\":\"forbidden\""},
	{HTTP_METHOD_POST, CONN "tasks/t-1/claim", "{\"worker_id\":\"w\"}", TASK_CLAIMED, REFUSED_UNAVAILABLE, 503, "\"error_code\":\"unavailable\""},
	{HTTP_METHOD_POST, CONN "tasks/t-1/progress", "{\"worker_id\":\"w\",\"event\":\"x\"}", TASK_READY, REFUSED_NOT_CLAIMED, 400, "No active claim"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/progress", "{\"worker_id\":\"w\",\"event\":\"x\"}", TASK_READY, REFUSED_CLAIMED_BY_OTHER, 400, "No active claim"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/progress", "{\"worker_id\":\"w\",\"event\":\"x\"}", TASK_READY, REFUSED_STALE_CLAIM, 400, "No active claim"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/progress", "{\"worker_id\":\"w\",\"event\":\"x\"}", TASK_READY, REFUSED_ALREADY_TERMINAL, 400, "No active claim"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/progress", "{\"worker_id\":\"w\",\"event\":\"x\"}", TASK_READY, REFUSED_NOT_FOUND, 400, "No active claim"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/progress", "{\"worker_id\":\"w\",\"event\":\"x\"}", TASK_READY, REFUSED_RATE_LIMITED, 429, "\"error_code\":\"rate_limited\""},
	{HTTP_METHOD_POST, CONN "tasks/t-1/progress", "{\"worker_id\":\"w\",\"event\":\"x\"}", TASK_READY, REFUSED_UNAVAILABLE, 503, "unavailable"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/release", "{\"worker_id\":\"w\"}", TASK_READY, REFUSED_NOT_CLAIMED, 409, "No active claim"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/release", "{\"worker_id\":\"w\"}", TASK_READY, REFUSED_NOT_FOUND, 409, "No active claim"},
	{HTTP_METHOD_POST, CONN "tasks/t-1/release", "{\"worker_id\":\"w\"}", TASK_READY, REFUSED_UNAVAILABLE, 503, "\"released\":false"},
	{HTTP_METHOD_DELETE, CONN "register/w1", NULL, TASK_READY, REFUSED_NOT_FOUND, 404, "Worker not registered"},
	{HTTP_METHOD_DELETE, CONN "register/w1", NULL, TASK_READY, REFUSED_UNAVAILABLE, 503, "cannot be written"},
	{HTTP_METHOD_POST, CONN "register", "{\"worker_id\":\"w\"}", TASK_READY, REFUSED_NOT_FOUND, 404, "Task not found"},
	{HTTP_METHOD_POST, CONN "heartbeat", "{\"worker_id\":\"w1\"}", TASK_READY, REFUSED_UNAVAILABLE, 503, "unavailable"},
};

static const struct said sessions[] = {
	{HTTP_METHOD_POST, SESSIONS "/spawn", "{}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"prompt\""},
	{HTTP_METHOD_POST, SESSIONS "/spawn", "{\"prompt\":5}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"prompt\""},
	{HTTP_METHOD_POST, SESSIONS "/spawn", "{\"prompt\":\"do it\",\"channel\":\"ops\",\"model\":\"m\",\"thinking\":\"high\",\"colour\":1}", TASK_READY, REFUSED_NOTHING, 201, "\"id\":\"s 1\""},
	{HTTP_METHOD_POST, SESSIONS "/spawn", "{\"prompt\":\"do it\",\"sessionLabel\":\"s-2\",\"channel\":\"internal\",\"autoStart\":false}", TASK_READY, REFUSED_NOTHING, 201, "\"taskId\":\"t-1\""},
	{HTTP_METHOD_POST, SESSIONS "/spawn", "{\"taskId\":\"t-1\"}", TASK_READY, REFUSED_NOTHING, 201, "\"taskId\":\"t-1\""},
	{HTTP_METHOD_POST, SESSIONS "/spawn", "{\"taskId\":\"t-1\",\"autoStart\":false}", TASK_READY, REFUSED_NOTHING, 201, "\"taskId\":\"t-1\""},
	{HTTP_METHOD_GET, SESSIONS "", NULL, TASK_READY, REFUSED_NOTHING, 200, "[{\"id\":\"s 1\""},
	{HTTP_METHOD_GET, SESSIONS "?x=1", NULL, TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"x\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"prompt\":\"do it\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201?x=1", NULL, TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"x\""},
	{HTTP_METHOD_GET, SESSIONS "/nobody", NULL, TASK_READY, REFUSED_NOTHING, 404, "not_found"},
	{HTTP_METHOD_GET, SESSIONS "/s%201/log", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"next\""},
	{HTTP_METHOD_GET, SESSIONS "/nobody/log", NULL, TASK_READY, REFUSED_NOTHING, 404, "not_found"},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"id\":\"s 1\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", "{\"x\":1}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"x\""},
	{HTTP_METHOD_DELETE, SESSIONS "/nobody", NULL, TASK_READY, REFUSED_NOTHING, 404, "not_found"},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_PENDING, REFUSED_NOTHING, 200, "\"status\":\"pending\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_PENDING, REFUSED_NOTHING, 200, "\"status\":\"pending\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_SCHEDULED, REFUSED_NOTHING, 200, "\"status\":\"queued\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_SCHEDULED, REFUSED_NOTHING, 200, "\"status\":\"queued\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_WAITING, REFUSED_NOTHING, 200, "\"status\":\"queued\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_WAITING, REFUSED_NOTHING, 200, "\"status\":\"queued\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"status\":\"queued\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"status\":\"queued\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_CLAIMED, REFUSED_NOTHING, 200, "\"status\":\"running\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_CLAIMED, REFUSED_NOTHING, 200, "\"status\":\"running\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_RUNNING, REFUSED_NOTHING, 200, "\"status\":\"running\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_RUNNING, REFUSED_NOTHING, 200, "\"status\":\"running\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_ASKING, REFUSED_NOTHING, 200, "\"status\":\"asking\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_ASKING, REFUSED_NOTHING, 200, "\"status\":\"asking\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_REVIEW, REFUSED_NOTHING, 200, "\"status\":\"completed\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_REVIEW, REFUSED_NOTHING, 200, "\"status\":\"completed\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_DONE, REFUSED_NOTHING, 200, "\"status\":\"completed\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_DONE, REFUSED_NOTHING, 200, "\"status\":\"completed\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_BLOCKED, REFUSED_NOTHING, 200, "\"status\":\"failed\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_BLOCKED, REFUSED_NOTHING, 200, "\"status\":\"failed\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_FAILED, REFUSED_NOTHING, 200, "\"status\":\"failed\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_FAILED, REFUSED_NOTHING, 200, "\"status\":\"failed\""},
	{HTTP_METHOD_GET, SESSIONS "/s%201", NULL, TASK_CANCELLED, REFUSED_NOTHING, 200, "\"status\":\"stopped\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_CANCELLED, REFUSED_NOTHING, 200, "\"status\":\"stopped\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_READY, REFUSED_BAD_TRANSITION, 409, "\"state\":\"ready\""},
	{HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL, TASK_READY, REFUSED_ALREADY_TERMINAL, 200, "\"id\":\"s 1\""},
	{HTTP_METHOD_POST, SESSIONS "/spawn", "{\"prompt\":\"x\"}", TASK_READY, REFUSED_TASK_EXISTS, 409, "\"code\":\"task_exists\""},
};

static const struct said heartbeats[] = {
	{HTTP_METHOD_POST, BEATS "", "{}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"slot\""},
	{HTTP_METHOD_POST, BEATS "", "{\"slot\":\"w1\",\"status\":\"asleep\"}", TASK_READY, REFUSED_NOTHING, 422, "must be \\\"idle\\\", \\\"working\\\" or \\\"offline\\\""},
	{HTTP_METHOD_POST, BEATS "", "{\"slot\":\"w1\",\"status\":\"working\"}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"task\""},
	{HTTP_METHOD_POST, BEATS "", "{\"slot\":\"w1\",\"status\":\"idle\",\"metadata\":{\"workerPid\":0}}", TASK_READY, REFUSED_NOTHING, 422, "metadata.workerPid"},
	{HTTP_METHOD_POST, BEATS "", "{\"slot\":\"w1\",\"status\":\"idle\",\"metadata\":{\"workerPid\":\"x\"}}", TASK_READY, REFUSED_NOTHING, 422, "metadata.workerPid"},
	{HTTP_METHOD_POST, BEATS "", "{\"slot\":\"w1\",\"status\":\"idle\",\"metadata\":{\"workerPid\":null,\"x\":1},\"colour\":1}", TASK_READY, REFUSED_NOTHING, 200, "\"slot\":\"slot-1\""},
	{HTTP_METHOD_POST, BEATS "", "{\"slot\":\"w1\",\"status\":\"working\",\"task\":\"t-1\",\"taskTitle\":\"T\",\"sessionId\":\"s\"}", TASK_READY, REFUSED_NOTHING, 200, "\"status\":\"working\""},
	{HTTP_METHOD_POST, BEATS "", "{\"slot\":\"w1\",\"status\":\"offline\"}", TASK_READY, REFUSED_NOTHING, 200, "\"slot\":\"slot-1\""},
	{HTTP_METHOD_POST, BEATS "", "{\"slot\":\"w1\",\"status\":\"idle\",\"metadata\":{\"a\":\"" LONG "\"}}", TASK_READY, REFUSED_NOTHING, 413, "\"code\":\"too_large\""},
	{HTTP_METHOD_GET, BEATS "", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"slot\":\"slot-1\",\"status\":\"working\""},
	{HTTP_METHOD_GET, BEATS "?shape=map", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"workers\":{"},
	{HTTP_METHOD_GET, BEATS "?shape=array", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"mode\":\"active\""},
	{HTTP_METHOD_GET, BEATS "?shape=round", NULL, TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"shape\""},
	{HTTP_METHOD_POST, BEATS "", "{\"slot\":\"w1\",\"status\":\"idle\"}", TASK_READY, REFUSED_WORKER_INACTIVE, 410, "WORKER_INACTIVE"},
};

static const struct said items[] = {
	{HTTP_METHOD_POST, ITEMS "enqueue", "{}", TASK_READY, REFUSED_NOTHING, 400, "\"error\":\"queue_required\""},
	{HTTP_METHOD_POST, ITEMS "enqueue", "[]", TASK_READY, REFUSED_NOTHING, 400, "invalid_request"},
	{HTTP_METHOD_POST, ITEMS "enqueue", "{\"queue\":5}", TASK_READY, REFUSED_NOTHING, 400, "must be a string"},
	{HTTP_METHOD_POST, ITEMS "enqueue", "{\"queue\":\"a\\u0001b\"}", TASK_READY, REFUSED_NOTHING, 400, "\"field\":\"queue\""},
	{HTTP_METHOD_POST, ITEMS "enqueue", "{\"queue\":\"q\",\"priority\":\"7x\"}", TASK_READY, REFUSED_NOTHING, 400, "must be a whole number"},
	{HTTP_METHOD_POST, ITEMS "enqueue", "{\"queue\":\"q\",\"priority\":\"-\"}", TASK_READY, REFUSED_NOTHING, 400, "must be a whole number"},
	{HTTP_METHOD_POST, ITEMS "enqueue", "{\"queue\":\"q\",\"priority\":\"1234567890123456789\"}", TASK_READY, REFUSED_NOTHING, 400, "must be a whole number"},
	{HTTP_METHOD_POST, ITEMS "enqueue", "{\"queue\":\"q\",\"priority\":4294967296}", TASK_READY, REFUSED_NOTHING, 400, "must be a whole number"},
	{HTTP_METHOD_POST, ITEMS "enqueue", "{\"queue\":\"q\",\"priority\":\"-7\"}", TASK_READY, REFUSED_NOTHING, 200, "\"ok\":true"},
	{HTTP_METHOD_POST, ITEMS "enqueue", "{\"queue\":\"q\",\"dedupeKey\":\"a\\u0001b\"}", TASK_READY, REFUSED_NOTHING, 400, "without control characters"},
	{HTTP_METHOD_POST, ITEMS "enqueue", "{\"queue\":\"q\",\"dedupeKey\":\"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\"}", TASK_READY, REFUSED_NOTHING, 400, "with the queue, 251 bytes"},
	{HTTP_METHOD_POST, ITEMS "enqueue", "{\"queue\":\"q\",\"title\":\"tttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt\"}", TASK_READY, REFUSED_NOTHING, 400, "at most"},
	{HTTP_METHOD_POST, ITEMS "enqueue", "{\"queue\":\"q\",\"meta\":[1]}", TASK_READY, REFUSED_NOTHING, 400, "\"field\":\"meta\""},
	{HTTP_METHOD_POST, ITEMS "claim-next", "{}", TASK_READY, REFUSED_NOTHING, 400, "\"field\":\"agentId\""},
	{HTTP_METHOD_POST, ITEMS "claim-next", "{\"agentId\":\"a\\u0001\"}", TASK_READY, REFUSED_NOTHING, 400, "\"field\":\"agentId\""},
	{HTTP_METHOD_POST, ITEMS "claim-next", "{\"agentId\":\"a\",\"queues\":\"q\"}", TASK_READY, REFUSED_NOTHING, 400, "must be a list of strings"},
	{HTTP_METHOD_POST, ITEMS "claim-next", "{\"agentId\":\"a\",\"queues\":[\"q\",5]}", TASK_READY, REFUSED_NOTHING, 400, "has at [1] what is no string"},
	{HTTP_METHOD_POST, ITEMS "claim-next", "{\"agentId\":\"a\",\"queues\":[\"a\\u0001\"]}", TASK_READY, REFUSED_NOTHING, 400, "has a name that is not"},
	{HTTP_METHOD_POST, ITEMS "claim-next", "{\"agentId\":\"a\",\"queues\":null,\"includeStatuses\":[\"done\"]}", TASK_READY, REFUSED_NOTHING, 400, "includeStatuses"},
	{HTTP_METHOD_POST, ITEMS "claim-next", "{\"agentId\":\"a\",\"defaultQueues\":[\"d\"],\"resumeOwned\":\"true\",\"preferOwned\":true}", TASK_READY, REFUSED_NOTHING, 200, "\"queuesSource\":\"default\""},
	{HTTP_METHOD_POST, ITEMS "claim-next", "{\"agentId\":\"a\",\"defaultQueues\":[]}", TASK_READY, REFUSED_NOTHING, 200, "NO_QUEUES"},
	{HTTP_METHOD_POST, ITEMS "transition", "{}", TASK_READY, REFUSED_NOTHING, 400, "itemId_required"},
	{HTTP_METHOD_POST, ITEMS "transition", "{\"itemId\":\"t-1\"}", TASK_READY, REFUSED_NOTHING, 400, "agentId_required"},
	{HTTP_METHOD_POST, ITEMS "transition", "{\"itemId\":\"t-1\",\"agentId\":\"w1\"}", TASK_READY, REFUSED_NOTHING, 400, "invalid_status"},
	{HTTP_METHOD_POST, ITEMS "transition", "{\"itemId\":\"t-1\",\"agentId\":\"w1\",\"status\":\"failed\"}", TASK_READY, REFUSED_NOTHING, 400, "error_required"},
	{HTTP_METHOD_POST, ITEMS "transition", "{\"itemId\":\"t-1\",\"agentId\":\"w1\",\"status\":\"done\",\"fence\":7}", TASK_READY, REFUSED_NOTHING, 200, "\"ok\":true"},
	{HTTP_METHOD_POST, ITEMS "transition", "{\"itemId\":\"t-1\",\"agentId\":\"w1\",\"status\":\"in_progress\",\"note\":\"n\",\"fence\":\"\"}", TASK_READY, REFUSED_NOTHING, 200, "\"ok\":true"},
	{HTTP_METHOD_POST, ITEMS "progress", "{\"itemId\":\"t-1\",\"agentId\":\"w1\",\"fence\":\"x\"}", TASK_READY, REFUSED_NOTHING, 400, "\"field\":\"fence\""},
	{HTTP_METHOD_POST, ITEMS "update", "{}", TASK_READY, REFUSED_NOTHING, 400, "itemId_required"},
	{HTTP_METHOD_POST, ITEMS "update", "{\"itemId\":\"t-1\",\"patch\":5}", TASK_READY, REFUSED_NOTHING, 400, "\"field\":\"patch\""},
	{HTTP_METHOD_POST, ITEMS "update", "{\"itemId\":\"t-1\",\"patch\":{\"status\":\"lost\"}}", TASK_READY, REFUSED_NOTHING, 400, "invalid_status"},
	{HTTP_METHOD_POST, ITEMS "update", "{\"itemId\":\"nothing\",\"patch\":{\"title\":\"x\"}}", TASK_READY, REFUSED_NOTHING, 404, "item not found: nothing"},
	{HTTP_METHOD_POST, ITEMS "update", "{\"itemId\":\"t-1\",\"patch\":{\"title\":\"\",\"instructions\":\"i\",\"priority\":3}}", TASK_READY, REFUSED_NOTHING, 200, "\"ok\":true"},
	{HTTP_METHOD_POST, ITEMS "update", "{\"itemId\":\"t-1\"}", TASK_READY, REFUSED_NOTHING, 200, "\"ok\":true"},
	{HTTP_METHOD_POST, ITEMS "update", "{\"itemId\":\"t-1\",\"patch\":{\"status\":\"done\"}}", TASK_READY, REFUSED_NOTHING, 409, "an operator cannot make it done"},
	{HTTP_METHOD_POST, ITEMS "delete", "{}", TASK_READY, REFUSED_NOTHING, 400, "itemId_required"},
	{HTTP_METHOD_POST, ITEMS "delete", "{\"itemId\":\"t-1\"}", TASK_READY, REFUSED_NOTHING, 200, "\"ok\":true"},
	{HTTP_METHOD_POST, ITEMS "assignments", "{\"queues\":[\"q\"]}", TASK_READY, REFUSED_NOTHING, 400, "\"field\":\"agentId\""},
	{HTTP_METHOD_POST, ITEMS "assignments", "{\"agentId\":\"a\",\"queues\":[]}", TASK_READY, REFUSED_NOTHING, 400, "\"field\":\"queues\""},
	{HTTP_METHOD_GET, ITEMS "item/nothing", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"item\":null"},
	{HTTP_METHOD_GET, ITEMS "items?status=lost", NULL, TASK_READY, REFUSED_NOTHING, 400, "\"field\":\"status\""},
	{HTTP_METHOD_GET, ITEMS "items?order=odd", NULL, TASK_READY, REFUSED_NOTHING, 400, "\"field\":\"order\""},
	{HTTP_METHOD_GET, ITEMS "items?limit=0", NULL, TASK_READY, REFUSED_NOTHING, 400, "\"field\":\"limit\""},
	{HTTP_METHOD_GET, ITEMS "items?after=x", NULL, TASK_READY, REFUSED_NOTHING, 400, "\"field\":\"after\""},
	{HTTP_METHOD_GET, ITEMS "items?order=oldest&status=ready,done&queue=q", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"items\":["},
	{HTTP_METHOD_GET, ITEMS "summary?queue=q", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"ok\":true"},
	{HTTP_METHOD_GET, ITEMS "queues", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"queues\":["},
	{HTTP_METHOD_POST, ITEMS "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\"}", TASK_READY, REFUSED_NOT_FOUND, 404, "item not found: t-1"},
	{HTTP_METHOD_POST, ITEMS "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\"}", TASK_READY, REFUSED_NOT_CLAIMED, 409, "item is not claimed"},
	{HTTP_METHOD_POST, ITEMS "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\"}", TASK_READY, REFUSED_ALREADY_TERMINAL, 409, "item is already"},
	{HTTP_METHOD_POST, ITEMS "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\"}", TASK_READY, REFUSED_CLAIMED_BY_OTHER, 409, "item claimed by another agent"},
	{HTTP_METHOD_POST, ITEMS "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\"}", TASK_READY, REFUSED_STALE_CLAIM, 409, "stale_claim"},
	{HTTP_METHOD_POST, ITEMS "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\"}", TASK_READY, REFUSED_RATE_LIMITED, 429, "rate_limited"},
	{HTTP_METHOD_POST, ITEMS "done", "{\"itemId\":\"t-1\",\"agentId\":\"w1\"}", TASK_READY, REFUSED_UNAVAILABLE, 503, "workqueue_error"},
	{HTTP_METHOD_POST, ITEMS "update", "{\"itemId\":\"t-1\",\"patch\":{\"title\":\"x\"}}", TASK_READY, REFUSED_BAD_TRANSITION, 409, "bad_transition"},
	{HTTP_METHOD_POST, ITEMS "delete", "{\"itemId\":\"t-1\"}", TASK_READY, REFUSED_BAD_TRANSITION, 409, "bad_transition"},
};

static const struct said imports[] = {
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[]}", TASK_READY, REFUSED_NOTHING, 400, "must be a list of 1 to 500 items"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":5}", TASK_READY, REFUSED_NOTHING, 400, "must be a list"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[5]}", TASK_READY, REFUSED_NOTHING, 400, "items[0]"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{}]}", TASK_READY, REFUSED_NOTHING, 400, "items[0].id"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"priority\":\"x\"}]}", TASK_READY, REFUSED_NOTHING, 400, "items[0].priority"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"priority\":1000000000000.0}]}", TASK_READY, REFUSED_NOTHING, 200, "\"imported\":true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"priority\":-1000000000000.0}]}", TASK_READY, REFUSED_NOTHING, 200, "\"imported\":true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"priority\":1.5}]}", TASK_READY, REFUSED_NOTHING, 200, "\"imported\":true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"priority\":-1.5}]}", TASK_READY, REFUSED_NOTHING, 200, "\"imported\":true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"status\":\"lost\"}]}", TASK_READY, REFUSED_NOTHING, 400, "items[0].status"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"status\":5}]}", TASK_READY, REFUSED_NOTHING, 400, "items[0].status"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"status\":\"pending\"}]}", TASK_READY, REFUSED_NOTHING, 200, "true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"status\":\"done\",\"claimedBy\":\"w\",\"claimedAt\":\"2026-02-09T20:20:35.682Z\",\"leaseUntil\":5}]}", TASK_READY, REFUSED_NOTHING, 200, "true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"status\":\"failed\",\"lastError\":\"no\"}]}", TASK_READY, REFUSED_NOTHING, 200, "true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"status\":\"in_progress\",\"attempts\":2,\"lastNote\":\"n\"}]}", TASK_READY, REFUSED_NOTHING, 200, "true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"status\":\"claimed\"}]}", TASK_READY, REFUSED_NOTHING, 200, "true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"status\":\"\"}]}", TASK_READY, REFUSED_NOTHING, 200, "true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"attempts\":-1}]}", TASK_READY, REFUSED_NOTHING, 400, "items[0].attempts"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"status\":\"done\",\"claimedBy\":\"a\\u0001\"}]}", TASK_READY, REFUSED_NOTHING, 400, "items[0].claimedBy"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"createdAt\":5}]}", TASK_READY, REFUSED_NOTHING, 400, "items[0].createdAt"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"createdAt\":\"\"}]}", TASK_READY, REFUSED_NOTHING, 200, "true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"meta\":5,\"title\":\"T\"}]}", TASK_READY, REFUSED_NOTHING, 200, "true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\",\"meta\":{\"x\":1,\"clawnsoleItem\":{}},\"colour\":\"red\",\"dedupeKey\":\"k\"}]}", TASK_READY, REFUSED_NOTHING, 200, "true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"a\\u0001\"}]}", TASK_READY, REFUSED_NOTHING, 400, "items[0].queue"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"-\",\"queue\":\"q\"}]}", TASK_READY, REFUSED_NOTHING, 400, "items[0].id"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\"}]}", TASK_READY, REFUSED_TASK_EXISTS, 200, "\"imported\":false,\"exists\":true"},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\"}]}", TASK_READY, REFUSED_UNAVAILABLE, 200, "\"error\":\"unavailable\""},
	{HTTP_METHOD_POST, ITEMS "import", "{\"items\":[{\"id\":\"a\",\"queue\":\"q\"}],\"dryRun\":true}", TASK_READY, REFUSED_NOTHING, 200, "\"imported\":false"},
};

static const struct said tasks[] = {
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"priority\":\"soon\"}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"priority\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"priority\":1099511627776}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"priority\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"priority\":\"high\"}", TASK_READY, REFUSED_NOTHING, 201, "\"title\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"isolationLevel\":\"moat\"}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"isolationLevel\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"isolationLevel\":5}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"isolationLevel\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"isolationLevel\":\"vm\"}", TASK_READY, REFUSED_NOTHING, 201, "\"title\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"workflow\":\"none\"}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"workflow\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"workflow\":\"autopilot\"}", TASK_READY, REFUSED_NOTHING, 201, "\"title\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"workflow\":\"autopilot\",\"gates\":[\"a\",\"b\",\"c\"]}", TASK_READY, REFUSED_NOTHING, 201, "\"title\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"metadata\":5}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"metadata\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"metadata\":{\"autonomous_execution\":true}}", TASK_READY, REFUSED_NOTHING, 201, "\"title\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"metadata\":{\"a\":1},\"colour\":\"red\"}", TASK_READY, REFUSED_NOTHING, 201, "\"warnings\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"metadata\":{\"colour\":1},\"colour\":\"red\"}", TASK_READY, REFUSED_NOTHING, 201, "\"title\""},
	{HTTP_METHOD_POST, TASKS "", "{\"title\":\"T\",\"state\":\"done\"}", TASK_READY, REFUSED_NOTHING, 422, "is read-only"},
	{HTTP_METHOD_POST, TASKS "", "5", TASK_READY, REFUSED_NOTHING, 422, "must be a JSON object"},
	{HTTP_METHOD_PATCH, TASKS "/t-1", "{\"id\":\"x\"}", TASK_READY, REFUSED_NOTHING, 422, "cannot be changed after creation"},
	{HTTP_METHOD_PATCH, TASKS "/t-1", "{\"status\":\"lost\"}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"status\""},
	{HTTP_METHOD_PATCH, TASKS "/t-1", "{\"status\":5}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"status\""},
	{HTTP_METHOD_PATCH, TASKS "/t-1", "{\"status\":\"blocked\",\"metadata\":{\"errorReason\":\"no\"}}", TASK_READY, REFUSED_NOTHING, 200, "\"id\""},
	{HTTP_METHOD_PATCH, TASKS "/t-1", "{\"status\":\"blocked\"}", TASK_READY, REFUSED_NOTHING, 200, "\"id\""},
	{HTTP_METHOD_PATCH, TASKS "/t-1", "{\"title\":null}", TASK_READY, REFUSED_NOTHING, 200, "\"id\""},
	{HTTP_METHOD_PATCH, TASKS "/t-1", "{\"metadata\":null}", TASK_READY, REFUSED_NOTHING, 200, "\"id\""},
	{HTTP_METHOD_PATCH, TASKS "/t-1", "{\"metadata\":{\"failedAt\":1}}", TASK_READY, REFUSED_NOTHING, 200, "\"id\""},
};

static const struct said rest[] = {
	{HTTP_METHOD_GET, "/api/workflows", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"name\":\"autopilot\""},
	{HTTP_METHOD_GET, "/api/workflows/autopilot-deploy", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"builtIn\":true"},
	{HTTP_METHOD_GET, "/api/workflows/autopilot?x=1", NULL, TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"x\""},
	{HTTP_METHOD_GET, "/api/workflows/nothing", NULL, TASK_READY, REFUSED_NOTHING, 404, "not_found"},
	{HTTP_METHOD_GET, "/api/execution", NULL, TASK_READY, REFUSED_NOTHING, 200, "\"armed\":false"},
	{HTTP_METHOD_GET, "/api/execution?x=1", NULL, TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"x\""},
	{HTTP_METHOD_POST, "/api/execution", "{}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"armed\""},
	{HTTP_METHOD_POST, "/api/execution", "{\"armed\":true,\"reason\":\"now\"}", TASK_READY, REFUSED_NOTHING, 200, "\"armed\":"},
	{HTTP_METHOD_POST, "/api/execution", "{\"armed\":false,\"reason\":\"now\"}", TASK_READY, REFUSED_NOTHING, 200, "\"since\":null"},
	{HTTP_METHOD_POST, "/api/queues/%01/pause", NULL, TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"name\""},
	{HTTP_METHOD_POST, "/api/slots/%01/crash", NULL, TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"slot\""},
	{HTTP_METHOD_POST, "/api/tasks/t-1/events", "{}", TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"type\""},
	{HTTP_METHOD_POST, "/api/tasks/t-1/events", "{\"type\":\"x\",\"data\":{\"a\":\"" LONG "\"}}", TASK_READY, REFUSED_NOTHING, 422, "more than 65536 bytes"},
	{HTTP_METHOD_POST, "/api/tasks/t-1/events", "{\"type\":\"x\",\"data\":{\"pr_number\":7}}", TASK_READY, REFUSED_NOTHING, 200, "\"type\":\"task.noted\""},
	{HTTP_METHOD_POST, "/api/tasks/t-1/events", "{\"type\":\"x\",\"status\":\"success\"}", TASK_READY, REFUSED_NOTHING, 200, "\"task\":\"t-1\""},
	{HTTP_METHOD_GET, "/api/approvals", NULL, TASK_READY, REFUSED_NOTHING, 200, "[]"},
	{HTTP_METHOD_GET, "/api/approvals?x=1", NULL, TASK_READY, REFUSED_NOTHING, 422, "\"field\":\"x\""},
};

// clang-format on

static void say_row(struct dialogue *d, const struct said *row)
{
	const struct claimed claimed = {
		.task = d->task, .id = SPAN("t-1"), .body = d->task_body, .lease_ms = 1000};

	d->task.state = row->task;
	say(d, row->method, row->url, row->body);
	for (size_t i = 0; i < sizeof d->results / sizeof *d->results; i++)
		d->results[i] = (struct result){.refusal = row->refusal,
			.task = d->task,
			.id = SPAN("t-1"),
			.worker = {.state = WORKER_ACTIVE, .registered_ms = 5, .last_beat_ms = 6},
			.event_seq = 9,
			.noted_seq = 9,
			.noted_ms = 7,
			.claims = &claimed,
			.claim_count = 1};
	if (d->call.step == API_TURN)
		finish(d);
	if (d->call.step != API_REPLY || d->call.reply.status != row->status || !reply_has(d, row->part))
		fail_msg("%s %s %s: %d %.*s, without %d %s", http_method_name(row->method), row->url,
			row->body ? row->body : "", d->call.reply.status, SPAN_ARGS(d->call.reply.body),
			row->status, row->part);
	assert_int_equal(d->call.reply.retry_after_s, row->status == 503 || row->status == 429);
	reply_is(d, row->status);
}

#define SAY_ALL(d, rows)                                                   \
	do {                                                               \
		for (size_t at = 0; at < sizeof rows / sizeof *rows; at++) \
			say_row(d, &rows[at]);                             \
	} while (0)

static void a_connector_is_answered_in_its_own_words(void **state)
{
	struct dialogue *d = *state;

	d->task_count = 8;
	d->task.claim.holder = 1;
	SAY_ALL(d, connector);
}

static void a_session_is_a_task_with_a_label(void **state)
{
	struct dialogue *d = *state;

	d->task.code = CODE_STALLED; /* of those that failed */
	SAY_ALL(d, sessions);
}

static void a_slot_worker_beats_in_the_words_of_its_document(void **state)
{
	SAY_ALL((struct dialogue *)*state, heartbeats);
}

static void an_item_is_refused_in_the_words_of_the_original(void **state)
{
	SAY_ALL((struct dialogue *)*state, items);
}

static void an_imported_item_is_taken_as_it_was(void **state)
{
	struct dialogue *d = *state;

	d->call.who.scopes |= SCOPE_BIT(SCOPE_ADMIN);
	SAY_ALL(d, imports);
}

static void a_task_is_taken_apart_field_by_field(void **state)
{
	SAY_ALL((struct dialogue *)*state, tasks);
}

static void workflows_execution_and_events_of_others(void **state)
{
	SAY_ALL((struct dialogue *)*state, rest);
}

/* What the body asks for decides which scope it needs. */
static void a_session_needs_the_scope_of_what_it_does(void **state)
{
	struct dialogue *d = *state;
	struct span others[] = {SPAN("others")};

	d->call.who.scopes = SCOPE_BIT(SCOPE_PRODUCE);
	post(d, SESSIONS "/spawn", "{\"taskId\":\"t-1\"}");
	refused_with(d, 403, "forbidden");
	d->call.who.queues = (struct name_list){others, 1};
	post(d, SESSIONS "/spawn", "{\"prompt\":\"x\"}");
	refused_with(d, 403, "forbidden");
	reply_says(d, "other queues than");
	d->call.who.scopes = SCOPE_BIT(SCOPE_OPERATE);
	post(d, SESSIONS "/spawn", "{\"prompt\":\"x\"}");
	refused_with(d, 403, "forbidden");
}

static void a_session_that_a_worker_must_stop_is_accepted(void **state)
{
	struct dialogue *d = *state;

	d->task.state = TASK_RUNNING;
	d->task.claim.stopping = true;
	assert_int_equal(say(d, HTTP_METHOD_DELETE, SESSIONS "/s%201", NULL), API_TURN);
	finish_task(d, TASK_RUNNING);
	reply_is(d, 202);
	reply_says(d, "\"status\":\"stopping\"");
}

static void a_session_that_was_stopped_is_not_one_that_failed(void **state)
{
	struct dialogue *d = *state;

	d->task.state = TASK_BLOCKED;
	d->task.code = CODE_STOPPED;
	assert_int_equal(get(d, SESSIONS "/s%201"), 200);
	reply_says(d, "\"status\":\"stopped\"");
	d->task.code = CODE_EXECUTION_ERROR;
	d->task_error = SPAN("{\"code\":\"EXECUTION_ERROR\",\"message\":\"it broke\"}");
	assert_int_equal(get(d, SESSIONS "/s%201"), 200);
	reply_says(d, "\"error\":\"it broke\"");
}

/* Its last word ended the claim: there is nothing left to give back, and nothing wrong. */
static void a_connector_that_reported_may_release_as_well(void **state)
{
	struct dialogue *d = *state;

	d->last_worker = SPAN("w");
	for (int ended = ENDED_NOT; ended <= ENDED_COMPLETE; ended++) {
		d->task.ended = (enum claim_end)ended;
		post(d, CONN "tasks/t-1/release", "{\"worker_id\":\"w\"}");
		finish_refused(d, REFUSED_NOT_CLAIMED);
		bool is_over = ended == ENDED_REVIEW || ended == ENDED_FAIL || ended == ENDED_COMPLETE;
		reply_is(d, is_over ? 200 : 409);
	}
	post(d, CONN "tasks/t-1/release", "{\"worker_id\":\"another\"}");
	finish_refused(d, REFUSED_NOT_CLAIMED);
	reply_is(d, 409);
}

static void a_connector_sees_a_store_that_cannot_be_written(void **state)
{
	struct dialogue *d = *state;

	d->degraded = true;
	assert_int_equal(get(d, CONN "health"), 503);
	reply_says(d, "\"status\":\"degraded\"");
	assert_int_equal(d->call.reply.retry_after_s, 1);
}

static void without_a_token_execution_is_disarmed_and_not_armed(void **state)
{
	struct dialogue *d = *state;

	d->call.who.number = PRINCIPAL_OPEN;
	post(d, "/api/execution", "{\"armed\":true}");
	refused_with(d, 403, "forbidden");
	post(d, "/api/execution", "{\"armed\":false}");
	becomes(d, COMMAND_EXECUTION_SET);
}

static void only_the_token_of_a_gate_gives_its_verdict(void **state)
{
	struct dialogue *d = *state;
	static const char url[] = "/api/tasks/t-1/gates/ci";

	d->call.who.scopes = SCOPE_BIT(SCOPE_GATE);
	d->call.who.gate = SPAN("security");
	post(d, url, "{\"verdict\":\"pass\"}");
	refused_with(d, 403, "forbidden");
	d->call.who.scopes = SCOPE_BIT(SCOPE_APPROVE);
	post(d, url, "{\"verdict\":\"perhaps\"}");
	refuses_field(d, "verdict");
	post(d, "/api/tasks/t-1/gates/%01", "{\"verdict\":\"pass\"}");
	refused_with(d, 404, "not_found");
	post(d, url, "{\"verdict\":\"reject\",\"reason\":\"no\",\"evidence\":[1]}");
	assert_true(is(becomes(d, COMMAND_VERDICT)->note,
		"\"verdict\":\"reject\",\"reason\":\"no\",\"evidence\":[1]"));
	finish_refused(d, REFUSED_BAD_TRANSITION);
	refused_with(d, 409, "bad_transition");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DIALOGUE(a_connector_is_answered_in_its_own_words),
		DIALOGUE(a_session_is_a_task_with_a_label),
		DIALOGUE(a_slot_worker_beats_in_the_words_of_its_document),
		DIALOGUE(an_item_is_refused_in_the_words_of_the_original),
		DIALOGUE(an_imported_item_is_taken_as_it_was),
		DIALOGUE(a_task_is_taken_apart_field_by_field),
		DIALOGUE(workflows_execution_and_events_of_others),
		DIALOGUE(a_session_needs_the_scope_of_what_it_does),
		DIALOGUE(a_session_that_a_worker_must_stop_is_accepted),
		DIALOGUE(a_session_that_was_stopped_is_not_one_that_failed),
		DIALOGUE(a_connector_that_reported_may_release_as_well),
		DIALOGUE(a_connector_sees_a_store_that_cannot_be_written),
		DIALOGUE(without_a_token_execution_is_disarmed_and_not_armed),
		DIALOGUE(only_the_token_of_a_gate_gives_its_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
