/*
 * What a request line and its headers may say (RFC 9112 and 9110), read more narrowly than the RFCs allow where
 * two readers could disagree: that is where requests are smuggled.
 */
#include "wire/http/head.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#define REFUSE(number, text)                                                    \
	do {                                                                    \
		static const struct http_complaint complaint_ = {number, text}; \
		return &complaint_;                                             \
	} while (0)

/* How often a header may come. */
enum occurs {
	ONCE,
	LIST, /* several lines are one list; the first line is what we keep */
	LAST, /* … the last line is: the proxy that is nearest to us wrote it */
};

struct field_rule {
	struct span name;
	enum occurs occurs;
	/* What the value may be and what it means; NULL: any value, for others to read. */
	const struct http_complaint *(*check)(struct http_head *head, struct span value);
};

enum {
	CHUNK_DIGITS_MAX = 16,  /* of a size: 64 bits */
	LENGTH_DIGITS_MAX = 19, /* what fits into 64 bits, whatever the digits */
};

#define SPAN_OF(literal) {"" literal, sizeof(literal) - 1} /* SPAN() is no constant */

// clang-format off
static const char *const method_names[] = {
	[HTTP_METHOD_OTHER]  = "OTHER",
	[HTTP_METHOD_GET]    = "GET",
	[HTTP_METHOD_HEAD]   = "HEAD",
	[HTTP_METHOD_POST]   = "POST",
	[HTTP_METHOD_PUT]    = "PUT",
	[HTTP_METHOD_PATCH]  = "PATCH",
	[HTTP_METHOD_DELETE] = "DELETE",
};
// clang-format on

#define METHOD_COUNT (sizeof method_names / sizeof method_names[0])

const char *http_method_name(enum http_method method)
{
	assert((size_t)method < METHOD_COUNT);
	return method_names[method];
}

struct http_limits http_limits_default(void)
{
	return (struct http_limits){
		.head_bytes_max = 16384,
		.headers_max = 64,
		.url_bytes_max = 4096,
		.body_bytes_max = 1048576,
	};
}

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool is_letter(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

/* Bytes of an RFC 9110 token. */
static const bool is_token_byte[256] = {
	['0' ... '9'] = true,
	['a' ... 'z'] = true,
	['A' ... 'Z'] = true,
	['!'] = true,
	['#'] = true,
	['$'] = true,
	['%'] = true,
	['&'] = true,
	['\''] = true,
	['*'] = true,
	['+'] = true,
	['-'] = true,
	['.'] = true,
	['^'] = true,
	['_'] = true,
	['`'] = true,
	['|'] = true,
	['~'] = true,
};

static bool is_token(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!is_token_byte[(unsigned char)text.data[i]])
			return false;
	return text.len > 0;
}

bool http_is_word(struct span text, const char *word)
{
	return text.len == strlen(word) && strncasecmp(text.data, word, text.len) == 0;
}

static inline struct span without_blanks(struct span text)
{
	while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
		text.data++;
		text.len--;
	}
	while (text.len > 0 && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
		text.len--;
	return text;
}

/* Cuts the text off *rest at the first `byte`. False: *rest has no such byte. */
static bool cut(struct span *rest, char byte, struct span *ret_before)
{
	const char *found = rest->len > 0 ? memchr(rest->data, byte, rest->len) : NULL;

	if (!found)
		return false;
	*ret_before = (struct span){rest->data, (size_t)(found - rest->data)};
	rest->len -= ret_before->len + 1;
	rest->data = found + 1;
	return true;
}

/* ---- what requests and replies share ---- */

bool http_list_has(struct span list, const char *word)
{
	struct span option;

	while (cut(&list, ',', &option)) {
		if (http_is_word(without_blanks(option), word))
			return true;
	}
	return http_is_word(without_blanks(list), word);
}

/* "0", "0.0": not wanted. Weights have no other zero. */
static bool is_weight_of_zero(struct span parameter)
{
	struct span name;

	if (!cut(&parameter, '=', &name) || !http_is_word(without_blanks(name), "q"))
		return false;
	parameter = without_blanks(parameter);
	for (size_t i = 0; i < parameter.len; i++) {
		if (parameter.data[i] != (i == 1 ? '.' : '0'))
			return false;
	}
	return parameter.len > 0;
}

/* "text/event-stream;q=0.5" */
static bool range_accepts(struct span range, const char *type)
{
	struct span part;
	bool more = cut(&range, ';', &part);

	if (!http_is_word(without_blanks(more ? part : range), type))
		return false;
	while (more) {
		more = cut(&range, ';', &part);
		if (is_weight_of_zero(more ? part : range))
			return false;
	}
	return true;
}

bool http_accepts(struct span accept, const char *type)
{
	struct span range;

	while (cut(&accept, ',', &range)) {
		if (range_accepts(range, type))
			return true;
	}
	return range_accepts(accept, type);
}

bool http_length_read(struct span value, uint64_t *ret_length)
{
	uint64_t length = 0;

	if (value.len == 0 || value.len > LENGTH_DIGITS_MAX)
		return false;
	for (size_t i = 0; i < value.len; i++) {
		if (!is_digit(value.data[i]))
			return false;
		length = length * 10 + (uint64_t)(value.data[i] - '0');
	}
	*ret_length = length;
	return true;
}

/* The length of a token, or of a text in quotes, at the start; 0: there is neither. */
static size_t extension_value(struct span text)
{
	size_t at = 1;

	if (text.len == 0 || text.data[0] != '"') {
		for (at = 0; at < text.len && is_token_byte[(unsigned char)text.data[at]];)
			at++;
		return at;
	}
	while (at < text.len && text.data[at] != '"')
		at += text.data[at] == '\\' ? 2 : 1;
	return at < text.len ? at + 1 : 0;
}

/* ;name or ;name=value, several of them. Nobody reads what they say, and blanks are refused: readers differ about them. */
static bool are_extensions(struct span text)
{
	while (text.len > 0) {
		struct span rest = {text.data + 1, text.len - 1};
		size_t name = extension_value(rest), value = 0;

		if (text.data[0] != ';' || name == 0 || rest.data[0] == '"')
			return false;
		rest = (struct span){rest.data + name, rest.len - name};
		if (rest.len > 0 && rest.data[0] == '=') {
			rest = (struct span){rest.data + 1, rest.len - 1};
			value = extension_value(rest);
			if (value == 0)
				return false;
		}
		text = (struct span){rest.data + value, rest.len - value};
	}
	return true;
}

bool http_chunk_read(struct span line, uint64_t *ret_size, size_t *ret_extension_bytes)
{
	uint64_t size = 0;
	size_t digits = 0;

	while (digits < line.len && digits <= CHUNK_DIGITS_MAX && hex_digit(line.data[digits]) >= 0)
		size = size << 4 | (uint64_t)hex_digit(line.data[digits++]);
	if (digits == 0 || digits > CHUNK_DIGITS_MAX)
		return false;
	*ret_size = size;
	*ret_extension_bytes = line.len - digits;
	return are_extensions((struct span){line.data + digits, line.len - digits});
}

bool http_line_split(struct span line, struct span *ret_name, struct span *ret_value)
{
	if (line.data[0] == ' ' || line.data[0] == '\t')
		return false;
	*ret_value = line;
	if (!cut(ret_value, ':', ret_name) || !is_token(*ret_name))
		return false;
	*ret_value = without_blanks(*ret_value);
	return true;
}

/* ---- the request line ---- */

/* Methods of HTTP that nothing here is served by. */
static bool is_known_method(struct span name)
{
	return span_is(name, "OPTIONS") || span_is(name, "TRACE") || span_is(name, "QUERY");
}

static enum http_method method_of(struct span name)
{
	for (size_t i = HTTP_METHOD_GET; i < METHOD_COUNT; i++)
		if (span_is(name, method_names[i]))
			return (enum http_method)i;
	return HTTP_METHOD_OTHER;
}

static const struct http_complaint *version_check(struct http_head *head, struct span version)
{
	if (version.len != 8 || memcmp(version.data, "HTTP/", 5) != 0 || !is_digit(version.data[5]) ||
		version.data[6] != '.' || !is_digit(version.data[7]))
		REFUSE(400, "The request line must end in the HTTP version.");
	if (version.data[5] != '1' || version.data[7] > '1')
		REFUSE(505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.");
	head->is_http_1_1 = version.data[7] == '1';
	return NULL;
}

/* All of ASCII that can be seen, except the one that begins a fragment. */
static const bool is_target_byte[256] = {
	['!' ... '"'] = true,
	['$' ... '~'] = true,
};

/* Only "/path?query" is served: with the authority in two places, two readers may believe different ones. */
static const struct http_complaint *target_check(struct span target, const struct http_limits *limits)
{
	if (target.len == 0 || target.data[0] != '/')
		REFUSE(400, "The request target must begin with '/'.");
	if (target.len > limits->url_bytes_max)
		REFUSE(414, "The URL is too long.");
	for (size_t i = 0; i < target.len; i++)
		if (!is_target_byte[(unsigned char)target.data[i]])
			REFUSE(400, "The request target contains a byte that must be percent-encoded.");
	return NULL;
}

static struct http_mark mark_of(size_t at, size_t len)
{
	return (struct http_mark){(uint32_t)at, (uint32_t)len}; /* a head is far smaller than that */
}

static void target_split(struct http_head *head, struct span target, size_t at)
{
	struct span path;
	struct span rest = target;

	head->path = mark_of(at, target.len);
	if (!cut(&rest, '?', &path))
		return;
	head->path = mark_of(at, path.len);
	head->query = mark_of(at + path.len + 1, rest.len);
}

const struct http_complaint *http_head_start(
	struct http_head *head, struct span line, size_t at, const struct http_limits *limits)
{
	const struct http_complaint *complaint;
	struct span method, target, version = line;

	bool has_method = cut(&version, ' ', &method);
	head->method = has_method ? method_of(method) : HTTP_METHOD_OTHER;
	bool is_ours = head->method != HTTP_METHOD_OTHER;
	if (!has_method || (!is_ours && !is_token(method)))
		REFUSE(400, "The request line must begin with a method.");
	if (!cut(&version, ' ', &target))
		REFUSE(400, "The request line must have a method, a target and the HTTP version.");
	complaint = version_check(head, version);
	if (complaint)
		return complaint;
	if (!is_ours && http_is_word(method, "CONNECT"))
		REFUSE(501, "This server is no proxy.");
	complaint = target_check(target, limits);
	if (complaint)
		return complaint;
	if (!is_ours && !is_known_method(method))
		REFUSE(501, "The method is unknown.");
	target_split(head, target, at + method.len + 1);
	return NULL;
}

/* ---- headers ---- */

static const struct http_complaint *host_check(struct http_head *head, struct span value)
{
	(void)head;
	for (size_t i = 0; i < value.len; i++)
		if (!is_digit(value.data[i]) && !is_letter(value.data[i]) &&
			!memchr("-._~%!$&'()*+,;=:[]", value.data[i], 19))
			REFUSE(400, "The Host header is not a host name.");
	return NULL;
}

static const struct http_complaint *content_length_check(struct http_head *head, struct span value)
{
	if (!http_length_read(value, &head->content_length))
		REFUSE(400, "Content-Length must be a number.");
	return NULL;
}

static const struct http_complaint *transfer_encoding_check(struct http_head *head, struct span value)
{
	(void)head;
	if (!http_is_word(value, "chunked"))
		REFUSE(400, "The only transfer encoding understood is chunked.");
	return NULL;
}

static const struct http_complaint *expect_check(struct http_head *head, struct span value)
{
	if (!http_is_word(value, "100-continue"))
		REFUSE(417, "The only expectation that can be met is 100-continue.");
	head->expects_continue = head->is_http_1_1; /* an HTTP/1.0 client would take the 100 for the reply */
	return NULL;
}

static const struct http_complaint *connection_check(struct http_head *head, struct span value)
{
	head->says_close |= http_list_has(value, "close");
	head->says_keep_alive |= http_list_has(value, "keep-alive");
	return NULL;
}

static const struct http_complaint *upgrade_check(struct http_head *head, struct span value)
{
	(void)head;
	(void)value;
	REFUSE(501, "The protocol cannot be changed.");
}

// clang-format off
static const struct field_rule field_rules[HTTP_FIELD_COUNT] = {
	[HTTP_FIELD_HOST]              = {SPAN_OF("host"),              ONCE, host_check},
	[HTTP_FIELD_AUTHORIZATION]     = {SPAN_OF("authorization"),     ONCE, NULL},
	[HTTP_FIELD_CONTENT_TYPE]      = {SPAN_OF("content-type"),      ONCE, NULL},
	[HTTP_FIELD_CONTENT_LENGTH]    = {SPAN_OF("content-length"),    ONCE, content_length_check},
	[HTTP_FIELD_ACCEPT]            = {SPAN_OF("accept"),            LIST, NULL},
	[HTTP_FIELD_ORIGIN]            = {SPAN_OF("origin"),            ONCE, NULL},
	[HTTP_FIELD_FETCH_SITE]        = {SPAN_OF("sec-fetch-site"),    ONCE, NULL},
	[HTTP_FIELD_IDEMPOTENCY_KEY]   = {SPAN_OF("idempotency-key"),   ONCE, NULL},
	[HTTP_FIELD_IF_MATCH]          = {SPAN_OF("if-match"),          ONCE, NULL},
	[HTTP_FIELD_IF_NONE_MATCH]     = {SPAN_OF("if-none-match"),     LIST, NULL},
	[HTTP_FIELD_LAST_EVENT_ID]     = {SPAN_OF("last-event-id"),     ONCE, NULL},
	[HTTP_FIELD_REQUEST_ID]        = {SPAN_OF("x-request-id"),      LIST, NULL},
	[HTTP_FIELD_COOKIE]            = {SPAN_OF("cookie"),            ONCE, NULL},
	[HTTP_FIELD_PAGE_KEY]          = {SPAN_OF("stint-page-key"),    ONCE, NULL},
	[HTTP_FIELD_FORWARDED_FOR]     = {SPAN_OF("x-forwarded-for"),   LAST, NULL},
	[HTTP_FIELD_MCP_VERSION]       = {SPAN_OF("mcp-protocol-version"), ONCE, NULL},
	[HTTP_FIELD_MCP_METHOD]        = {SPAN_OF("mcp-method"),        ONCE, NULL},
	[HTTP_FIELD_MCP_NAME]          = {SPAN_OF("mcp-name"),          ONCE, NULL},
	[HTTP_FIELD_TRACEPARENT]       = {SPAN_OF("traceparent"),       LIST, NULL},
	[HTTP_FIELD_TRANSFER_ENCODING] = {SPAN_OF("transfer-encoding"), ONCE, transfer_encoding_check},
	[HTTP_FIELD_EXPECT]            = {SPAN_OF("expect"),            ONCE, expect_check},
	[HTTP_FIELD_CONNECTION]        = {SPAN_OF("connection"),        LIST, connection_check},
	[HTTP_FIELD_UPGRADE]           = {SPAN_OF("upgrade"),           LIST, upgrade_check},
};
// clang-format on

static enum http_field field_of(struct span name)
{
	for (size_t i = 0; i < HTTP_FIELD_COUNT; i++)
		if (name.len == field_rules[i].name.len &&
			strncasecmp(name.data, field_rules[i].name.data, name.len) == 0)
			return (enum http_field)i;
	return HTTP_FIELD_COUNT;
}

/* "name: value" */
__attribute__((always_inline)) static inline const struct http_complaint *field_split(struct http_head *head,
	struct span line, const struct http_limits *limits, enum http_field *ret_field,
	struct span *ret_value)
{
	struct span name, value = line;

	if (++head->headers > limits->headers_max)
		REFUSE(431, "There are too many headers.");
	if (line.data[0] == ' ' || line.data[0] == '\t')
		REFUSE(400, "A header must not be folded over several lines.");
	bool has_colon = cut(&value, ':', &name);
	*ret_field = has_colon ? field_of(name) : HTTP_FIELD_COUNT;
	if (!has_colon || (*ret_field == HTTP_FIELD_COUNT && !is_token(name)))
		REFUSE(400, "A header must be a name, a colon right after it, and a value.");
	*ret_value = without_blanks(value);
	return NULL;
}

const struct http_complaint *http_head_field(
	struct http_head *head, struct span line, size_t at, const struct http_limits *limits)
{
	enum http_field field;
	struct span value;
	const struct http_complaint *complaint = field_split(head, line, limits, &field, &value);

	if (complaint)
		return complaint;
	if (field == HTTP_FIELD_COUNT)
		return NULL;
	/* Some readers take a tab there for a part of the value, and some do not. */
	if ((field == HTTP_FIELD_CONTENT_LENGTH || field == HTTP_FIELD_TRANSFER_ENCODING) &&
		memchr(line.data, '\t', line.len))
		REFUSE(400, "A tab must not stand around Content-Length or Transfer-Encoding.");
	if (http_head_has(head, field) && field_rules[field].occurs == ONCE)
		REFUSE(400, "A header that has one value was sent twice.");
	if (!http_head_has(head, field) || field_rules[field].occurs == LAST)
		head->fields[field] = mark_of(at + (size_t)(value.data - line.data), value.len);
	return field_rules[field].check ? field_rules[field].check(head, value) : NULL;
}

const struct http_complaint *http_head_end(const struct http_head *head)
{
	if (!http_head_has(head, HTTP_FIELD_HOST))
		REFUSE(400, "The Host header is missing.");
	if (!http_head_has(head, HTTP_FIELD_TRANSFER_ENCODING))
		return NULL;
	if (http_head_has(head, HTTP_FIELD_CONTENT_LENGTH))
		REFUSE(400, "Content-Length and Transfer-Encoding exclude each other.");
	if (!head->is_http_1_1)
		REFUSE(400, "HTTP/1.0 has no Transfer-Encoding.");
	return NULL;
}

const struct http_complaint *http_head_trailer(
	struct http_head *head, struct span line, const struct http_limits *limits)
{
	enum http_field field;
	struct span value;
	const struct http_complaint *complaint = field_split(head, line, limits, &field, &value);

	if (complaint)
		return complaint;
	/* Too late to mean anything, and only a smuggler has a use for it. */
	if (field == HTTP_FIELD_CONTENT_LENGTH || field == HTTP_FIELD_TRANSFER_ENCODING ||
		field == HTTP_FIELD_HOST)
		REFUSE(400, "This header cannot come after the body.");
	return NULL;
}
