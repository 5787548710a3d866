package expect

import (
	"maps"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
)

func TestResend_AMessageThatIsSentAgainHasThePartsOfTheFirst(t *testing.T) {
	t.Parallel()
	session := "a"
	message := func(id string, properties map[string]any) *azservicebus.ReceivedMessage {
		all := map[string]any{"cloudEvents_id": id, "cloudEvents_type": "T"}
		maps.Copy(all, properties)
		return &azservicebus.ReceivedMessage{MessageID: id, SessionID: &session, ApplicationProperties: all}
	}
	first := Seen(message("m", nil))
	resend := func(of, id, group string) map[string]any {
		return map[string]any{"cloudEvents_resendof": of, "cloudEvents_resend": id, "cloudEvents_resendgroup": group}
	}
	sound := message("m~r", resend("m", "r", "g"))
	if got := Seen(sound); got != first {
		t.Errorf("parts: got %v, want %v", got, first)
	}
	if got, want := ResendOf(sound), (Resend{ID: "r", Group: "g"}); got != want {
		t.Errorf("resend: got %v, want %v", got, want)
	}
	for name, m := range map[string]*azservicebus.ReceivedMessage{
		"the id of the first":         message("m", resend("m", "r", "g")),
		"the id of another resend":    message("m~s", resend("m", "r", "g")),
		"another event":               message("m~r", resend("n", "r", "g")),
		"no resend":                   message("m~r", map[string]any{"cloudEvents_resendof": "m"}),
		"a group alone":               message("m", map[string]any{"cloudEvents_resendgroup": "g"}),
		"a property beside the three": message("m~r", map[string]any{"cloudEvents_resendof": "m", "cloudEvents_resend": "r", "other": "1"}),
	} {
		if got := Seen(m); got == first {
			t.Errorf("%s: got the parts of the first message", name)
		}
	}
}
