/*
 * Who prints which tables.
 */
#pragma once

void print_cli(void);
