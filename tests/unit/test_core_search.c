/*
 * Search: all words, in any order, from the beginning of a word, whatever their case.
 */
#include "core_fixture.h"

#include "core/task/search.h"

static bool finds(const char *question, const char *text)
{
	struct search_words search;

	assert_true(search_read(span_of(question), &search));
	return search_is_found(&search, search_look(&search, span_of(text)));
}

static void all_words_must_occur_in_any_order(void **state)
{
	(void)state;
	assert_true(finds("parser header", "Port the header parser"));
	assert_false(finds("parser footer", "Port the header parser"));
	assert_true(finds("", "anything"));
	assert_true(finds("  \t ", ""));
	assert_false(finds("x", ""));
}

static void the_beginning_of_a_word_counts_and_its_middle_does_not(void **state)
{
	(void)state;
	assert_true(finds("head", "Port the header parser"));
	assert_false(finds("eader", "Port the header parser"));
	assert_true(finds("fold", "test_header_fold"));
	assert_true(finds("t-7k", "t-7k3"));
	assert_true(finds("src/par", "in src/parser.c"));
	assert_true(finds(".c", "in src/parser.c"));
	assert_false(finds("headers", "header"));
}

static void case_makes_no_difference(void **state)
{
	(void)state;
	assert_true(finds("BUILD", "build"));
	assert_true(finds("build", "BUILD"));
	assert_true(finds("größe", "GRÖßE"));
	assert_true(finds("ÉTÉ", "un été"));
	assert_true(finds("сборка", "СБОРКА"));
	assert_true(finds("ώρα λόγος", "Λόγος ώρα"));
	assert_true(finds("žluť", "ŽLUŤ"));
	assert_false(finds("×", "÷")); /* signs between the letters have no case */
}

static void bytes_that_are_no_text_are_compared_as_they_are(void **state)
{
	(void)state;
	assert_true(finds("\xff\xc3", "\xff\xc3"));
	assert_false(finds("\xc3\xa9", "\xc3"));
}

static void too_many_words_are_refused(void **state)
{
	char question[2 * SEARCH_WORDS_MAX + 3] = "", one[SEARCH_WORD_MAX + 2];
	struct search_words search;

	(void)state;
	for (int i = 0; i < SEARCH_WORDS_MAX; i++)
		strcat(question, "a ");
	assert_true(search_read(span_of(question), &search));
	assert_true(search_is_found(&search, search_look(&search, SPAN("a"))));
	strcat(question, "a");
	assert_false(search_read(span_of(question), &search));
	memset(one, 'x', sizeof one);
	assert_false(search_read((struct span){one, SEARCH_WORD_MAX + 1}, &search));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_words_must_occur_in_any_order),
		cmocka_unit_test(the_beginning_of_a_word_counts_and_its_middle_does_not),
		cmocka_unit_test(case_makes_no_difference),
		cmocka_unit_test(bytes_that_are_no_text_are_compared_as_they_are),
		cmocka_unit_test(too_many_words_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
