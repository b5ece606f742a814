#include "core/task/search.h"

static bool is_blank(unsigned char byte)
{
	return byte <= ' ';
}

bool search_read(struct span question, struct search_words *ret_search)
{
	size_t at = 0;

	*ret_search = (struct search_words){0};
	for (;;) {
		while (at < question.len && is_blank((unsigned char)question.data[at]))
			at++;
		size_t begin = at;
		while (at < question.len && !is_blank((unsigned char)question.data[at]))
			at++;
		if (at == begin)
			return true;
		if (ret_search->count == SEARCH_WORDS_MAX || at - begin > SEARCH_WORD_MAX)
			return false;
		ret_search->words[ret_search->count++] = (struct span){question.data + begin, at - begin};
	}
}

/* A character of UTF-8 and its length; bytes that are none count as characters of their own. */
static uint32_t character(struct span text, size_t at, size_t *ret_len)
{
	const unsigned char *bytes = (const unsigned char *)text.data + at;
	size_t left = text.len - at;

	*ret_len = 1;
	if (bytes[0] >= 0xc2 && bytes[0] < 0xe0 && left > 1 && (bytes[1] & 0xc0) == 0x80) {
		*ret_len = 2;
		return (uint32_t)(bytes[0] & 0x1f) << 6 | (bytes[1] & 0x3f);
	}
	return bytes[0];
}

/* Letters of two cases have at most two bytes here; all others stay as they are. */
static uint32_t fold(uint32_t letter, size_t len)
{
	if (len == 1)
		return letter >= 'A' && letter <= 'Z' ? letter + 32 : letter;
	if ((letter >= 0xc0 && letter <= 0xde && letter != 0xd7) || /* Latin-1 */
		(letter >= 0x391 && letter <= 0x3a9) ||             /* Greek */
		(letter >= 0x410 && letter <= 0x42f))               /* Cyrillic */
		return letter + 32;
	if (letter >= 0x400 && letter <= 0x40f)
		return letter + 80;
	bool upper_is_even = (letter >= 0x100 && letter <= 0x137) || (letter >= 0x14a && letter <= 0x177);
	bool upper_is_odd = (letter >= 0x139 && letter <= 0x148) || (letter >= 0x179 && letter <= 0x17e);
	if ((upper_is_even && letter % 2 == 0) || (upper_is_odd && letter % 2 == 1))
		return letter + 1;
	return letter == 0x178 ? 0xff : letter;
}

static bool is_of_word(unsigned char byte)
{
	return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
		(byte >= 'A' && byte <= 'Z');
}

static bool begins_with(struct span text, size_t at, struct span word)
{
	size_t in = 0, text_len, word_len;

	while (in < word.len && at < text.len) {
		uint32_t said = character(text, at, &text_len), wanted = character(word, in, &word_len);
		if (text_len != word_len || fold(said, text_len) != fold(wanted, word_len))
			return false;
		at += text_len;
		in += word_len;
	}
	return in == word.len;
}

/* A sign that is asked for is found wherever it stands. */
static bool occurs(struct span text, struct span word)
{
	bool anywhere = !is_of_word((unsigned char)word.data[0]);

	for (size_t at = 0; at < text.len; at++) {
		bool begins = at == 0 || !is_of_word((unsigned char)text.data[at - 1]);
		if ((begins || anywhere) && begins_with(text, at, word))
			return true;
	}
	return false;
}

uint32_t search_look(const struct search_words *search, struct span text)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < search->count; i++) {
		if (occurs(text, search->words[i]))
			found |= UINT32_C(1) << i;
	}
	return found;
}
