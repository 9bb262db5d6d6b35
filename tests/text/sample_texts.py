"""Texts that the tests of text, vocabularies and tokenizer share: real ones, hostile ones, and how to draw them."""

from pydoc_data.topics import topics

from hypothesis import strategies as st

from minigrad.text.wordpiece import SPECIAL_TOKENS

REAL_TEXTS = [text for _, text in sorted(topics.items())]  # the language reference that comes with Python
FEW_TEXTS = REAL_TEXTS[:12]

HOSTILE = (
    "aZéÅßİıΣσςΆẞǅﬁK\u0345 \t\n\r\x00\x07\x0b\x0c\x1c\x1f\x7f\x85\xa0\xad"
    "\u0300\u0301\u0327\u0334\u0489\u0600\u061c\u08d4\u08dc\u1680\u180e\u1e9e\u1dfb\u2028\u2029\u200b\u200d\u202e\u2060"
    "\u0a3c\u0b3c\u1734\u1bf2\u302e\u302f\u3099\u3000\ue000\ufe0f\ufeff\ufff9\ufffd\uffff\U0001d160\U0001d165\U0001d16d"
    "\U0001d1bb\U0001e000\U0001e944\U0001e94a\U000e0041\U0010ffff"
    "中文﨎豈\U0002f800\U0002b820\U0002ceb0가한ᄀあア한ก็ि்\U00011938\U000111c9\U0001144b\ua7cb\ua7dc\U00010d50\U00016ea0"
    "😀👩🏽🇩$+<=>^`|~!#%'()*,-./:;?@[\\]_{}«»¿§¶·–—…‰※⁄、。「」・９①½²0123456789##"
)
HOSTILE_WORDS = [
    *SPECIAL_TOKENS,
    "[mask]",
    "[MASK",
    "##a",
    "don't",
    "naïve",
    "ΟΔΟΣ",
    "x" * 100,
    "x" * 101,
    "é" * 101,
]

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)  # a lone surrogate is not a text
HOSTILE_TEXT = st.lists(
    st.sampled_from(list(HOSTILE)) | st.sampled_from(HOSTILE_WORDS) | st.just(" "), max_size=30
).map("".join)
TEXT = HOSTILE_TEXT | ANY_TEXT

# (lower_case, strip_accents)
SETTINGS = [(True, None), (True, True), (True, False), (False, None), (False, True), (False, False)]
