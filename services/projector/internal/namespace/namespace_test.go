package namespace

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

func TestRead_ReadsAConnectionString(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       Access
	}{
		{"a key", "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=n;SharedAccessKey=a+b==", Access{Host: "ns.servicebus.windows.net", KeyName: "n", Key: "a+b=="}},
		{"a signature", "Endpoint=sb://ns/;SharedAccessSignature=SharedAccessSignature sr=x&sig=y=&se=1&skn=n", Access{Host: "ns", Signature: "SharedAccessSignature sr=x&sig=y=&se=1&skn=n"}},
		{"the emulator, at a port", "endpoint=sb://localhost:5672;sharedaccesskeyname=n;sharedaccesskey=k;usedevelopmentemulator=True;", Access{Host: "localhost:5672", KeyName: "n", Key: "k", Emulator: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(tt.text)
			if err != nil || got != tt.want {
				t.Errorf("got %+v and %v, want %+v", got, err, tt.want)
			}
		})
	}
}

func TestRead_RefusesWhatLacksSomethingAndQuotesNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "canary", "Endpoint=sb://x;SharedAccessKey=canary", "Endpoint=sb://x;SharedAccessKeyName=n",
		"SharedAccessKeyName=n;SharedAccessKey=canary", "Endpoint=:;SharedAccessKeyName=n;SharedAccessKey=canary",
		"Endpoint=sb://x;SharedAccessKeyName=n;SharedAccessKey=canary;UseDevelopmentEmulator=maybe",
	} {
		if _, err := Read(text); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: got %v, want an error that quotes nothing", text, err)
		}
	}
}

// The signature was made with Azure's own client for the same input.
func TestToken_OfAKeyIsSignedAsTheServiceAsks(t *testing.T) {
	t.Parallel()
	a := Access{Host: "ns.servicebus.windows.net", KeyName: "name", Key: "secret"}
	audience := a.Audience("topic/Subscriptions/sub")
	got, err := a.Token(t.Context(), audience, time.Hour)
	if err != nil || got.Kind != kindSignature || time.Until(got.Ends) > time.Hour || time.Until(got.Ends) < 59*time.Minute {
		t.Errorf("got %+v and %v, want a signature for an hour", got, err)
	}
	const want = "SharedAccessSignature sr=amqps%3a%2f%2fns.servicebus.windows.net%2ftopic%2fsubscriptions%2fsub&sig=asUCpK5Q8nYUnw2AKpOJr4IZ7YMrqYOkQbww8c8kVUQ%3D&se=1800000000&skn=name"
	if signed := sign(audience, a.KeyName, a.Key, time.Unix(1_800_000_000, 0)); signed != want {
		t.Errorf("got %s\nwant %s", signed, want)
	}
}

func TestToken_OfASignatureIsTheSignature(t *testing.T) {
	t.Parallel()
	a := Access{Signature: "SharedAccessSignature sr=x"}
	if got, err := a.Token(t.Context(), "x", time.Hour); err != nil || got.Text != a.Signature || !got.Ends.IsZero() {
		t.Errorf("got %+v and %v, want the signature, whose end is not known", got, err)
	}
}

type credential struct{ scopes []string }

func (c *credential) GetToken(_ context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	c.scopes = o.Scopes
	return azcore.AccessToken{Token: "jwt", ExpiresOn: time.Unix(5, 0)}, nil
}

func TestToken_OfACredentialIsForServiceBus(t *testing.T) {
	t.Parallel()
	c := &credential{}
	a := Access{Credential: c}
	got, err := a.Token(t.Context(), "x", time.Hour)
	if err != nil || got != (Token{Kind: "jwt", Text: "jwt", Ends: time.Unix(5, 0)}) || len(c.scopes) != 1 || c.scopes[0] != scope {
		t.Errorf("got %+v and %v for %q", got, err, c.scopes)
	}
}
