/*
 * JSON as YAML, for -o yaml: the same document, easier on the eye.
 */
#pragma once

#include "wire/json.h"

/* The value as one document, with a newline at its end. -ENOMEM, -E2BIG. */
int yaml_put(struct buf *out, yyjson_val *value);
