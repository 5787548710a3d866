package sandbox_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"changerelay/services/sandbox"
)

func TestKeys_TokensAreCheckedWhenAskedFor(t *testing.T) {
	t.Parallel()
	s := running(t, sandbox.Config{
		CheckSAS: true, SASKeys: []sandbox.SASKey{{Name: "listener", Secret: "secret", Rights: "Listen"}},
	})
	must(t, trySendTo(t, s.ServiceBusConnectionString()))
	for name, replace := range map[string]string{
		"a wrong secret":        "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=guess",
		"a key without a right": "SharedAccessKeyName=listener;SharedAccessKey=secret",
	} {
		other := strings.Replace(s.ServiceBusConnectionString(), "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE", replace, 1)
		var refusal *azservicebus.Error
		if err := trySendTo(t, other); !errors.As(err, &refusal) || refusal.Code != azservicebus.CodeUnauthorizedAccess {
			t.Errorf("%s: got %v, want unauthorized", name, err)
		}
	}
	if status, _ := ask(t, s.ManagementURL(), "GET", "/$namespaceinfo", ""); status != 401 {
		t.Errorf("got status %d from the management API without a token, want 401", status)
	}
}

func TestKeys_AKeyThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for _, key := range []sandbox.SASKey{{Name: "a", Secret: "b", Rights: "Read"}, {Name: "a", Rights: "Send"}, {Secret: "b", Rights: "Send"}} {
		if _, err := sandbox.New(sandbox.Config{CheckSAS: true, SASKeys: []sandbox.SASKey{key}}); !errors.Is(err, sandbox.ErrKey) {
			t.Errorf("%+v: got %v, want ErrKey", key, err)
		}
	}
}
