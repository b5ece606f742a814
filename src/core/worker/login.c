#include "core/worker/login.h"

bool login_role_is_known(enum token_kind role)
{
	return role == TOKEN_VIEWER || role == TOKEN_APPROVER || role == TOKEN_OPERATOR ||
		role == TOKEN_ADMIN;
}

bool login_is_sound(const struct browser_login *login)
{
	return login->state >= LOGIN_CODE && login->state <= LOGIN_ENDED &&
		login_role_is_known(login->role) && login->id[0] && login->maker[0] && login->made_ms > 0 &&
		(login->used_ms > 0) == (login->state != LOGIN_CODE) &&
		(login->ended_ms > 0) == (login->state == LOGIN_ENDED);
}

bool login_takes_code(const struct browser_login *login, int64_t wall_ms)
{
	return login->state == LOGIN_CODE && wall_ms < login->made_ms + LOGIN_CODE_MS;
}

bool login_is_open(const struct browser_login *login, int64_t wall_ms)
{
	return login->state == LOGIN_SESSION && wall_ms < login->used_ms + LOGIN_LIVES_MS;
}

bool login_is_stale(const struct browser_login *login, int64_t wall_ms)
{
	switch (login->state) {
	case LOGIN_CODE:
		return !login_takes_code(login, wall_ms);
	case LOGIN_SESSION:
		return !login_is_open(login, wall_ms);
	case LOGIN_ENDED:
		return wall_ms >= login->ended_ms + LOGIN_KEPT_MS;
	}
	return true;
}

enum token_kind login_role(const struct browser_login *login, int64_t wall_ms)
{
	bool is_old = wall_ms >= login->made_ms + LOGIN_ADMIN_MS;

	return login->role == TOKEN_ADMIN && is_old ? TOKEN_OPERATOR : login->role;
}
