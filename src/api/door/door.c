#include "api/door/door.h"

void *door_list(struct api_call *call, size_t bytes)
{
	call->query_taken = true;
	return call_detail(call, bytes);
}

void door_list_begin(struct api_call *call, const char *head)
{
	call_reply_begin(call);
	buf_put_span(call->body, span_of(head));
}

void door_list_slice(struct api_call *call, int fault, bool more, const char *tail)
{
	if (fault == 0 && more && !buf_fault(call->body)) {
		call_again(call);
		return;
	}
	if (fault == 0)
		buf_put_span(call->body, span_of(tail));
	call_reply(call, 200, fault);
}
