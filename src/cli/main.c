/*
 * stint: the command line and nothing else. Find the verb, read its flags, run it (run.c).
 */
#include "cli/run.h"

int main(int argc, char **argv)
{
	return cli_run(argc, argv);
}
