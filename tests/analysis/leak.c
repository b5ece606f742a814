/* Planted: on the way out of a refusal the copy is forgotten. `tools/analyze --self-test` expects that this is found. */
#include <stdlib.h>
#include <string.h>

int keep(const char *text, char **ret_copy);

int keep(const char *text, char **ret_copy)
{
	char *copy = strdup(text);

	if (!copy)
		return -1;
	if (copy[0] == '-')
		return -2;
	*ret_copy = copy;
	return 0;
}
