/* Planted: memory that may not be there is written to. `tools/analyze --self-test` expects that this is found. */
#include <stdlib.h>

struct counter {
	int value;
};

struct counter *counter_new(int value);

struct counter *counter_new(int value)
{
	struct counter *counter = malloc(sizeof *counter);

	counter->value = value;
	return counter;
}
