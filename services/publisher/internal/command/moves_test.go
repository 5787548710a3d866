package command

import (
	"testing"

	"changerelay/services/publisher/internal/changestream"
)

// TestParsePlace_APositionOfAFragmentIsThatOfItsChange: messages of earlier releases have
// such ones.
func TestParsePlace_APositionOfAFragmentIsThatOfItsChange(t *testing.T) {
	t.Parallel()
	const named = "826553000000000007" + "2B042C0100296E5A100400112233445566778899AABBCCDDEEFF" +
		"463C6F7065726174696F6E54797065003C696E736572740046646F63756D656E744B657900461E5F6964002B020000"
	const at, whole, second = "6553000000000007.", "04", "2B0204"
	for _, text := range []string{at + named + whole, at + named + second, named + second} {
		place, err := parsePlace(text)
		if err != nil || place.Position != at+named+whole || changestream.PositionOf(place.Token) != place.Position {
			t.Errorf("%s is the place %+v, %v, want that of the change", text, place, err)
		}
	}
}
