/*
 * A run of `stint`, from its words to its exit status.
 */
#pragma once

int cli_run(int argc, char **argv);
