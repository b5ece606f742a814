/*
 * spec/openapi.json as a part of the program. Where it lies and what its ETag is comes from tools/embed-openapi.
 */
#include "api/openapi_text.h"

	.section .rodata
	.global openapi_json
	.global openapi_json_end
openapi_json:
	.incbin OPENAPI_PATH
openapi_json_end:
	.byte 0

	.section .note.GNU-stack, "", %progbits
