package redact_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"changerelay/services/publisher/internal/redact"
)

func TestSecretsAreRedactedInEveryForm(t *testing.T) {
	t.Parallel()
	uri := "mongodb://user:ca%40nary@db.example:27017/?replicaSet=rs0&tls=true"
	connection := "Endpoint=sb://ns.example/;SharedAccessKeyName=root;SharedAccessKey=c4n+ry/key==;EntityPath=orders"
	signature := "Endpoint=sb://ns.example/;SharedAccessSignature=SharedAccessSignature sr=x&sig=c4n%2Fsig"
	r := redact.New(uri, connection, signature, "")
	for name, text := range map[string]string{
		"the whole URI":         "dial " + uri + ": refused",
		"the password":          "password ca@nary is wrong",
		"the password, escaped": "userinfo ca%40nary@db",
		"the connection string": connection,
		"the key":               "key c4n+ry/key== is wrong",
		"the key, escaped":      "sig=c4n%2Bry%2Fkey%3D%3D",
		"the signature":         "token SharedAccessSignature sr=x&sig=c4n%2Fsig",
		"in JSON":               `{"error":"SharedAccessSignature sr=x\u0026sig=c4n%2Fsig"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := r.Text(text)
			for _, canary := range []string{"ca@nary", "ca%40nary", "c4n+ry", "c4n%2B", "c4n%2Fsig"} {
				if strings.Contains(got, canary) {
					t.Errorf("%q became %q", text, got)
				}
			}
			var written bytes.Buffer
			if n, err := fmt.Fprint(r.Writer(&written), text); err != nil || n != len(text) || written.String() != got {
				t.Errorf("Writer wrote %q, %d, %v, want %q, %d", written.String(), n, err, got, len(text))
			}
		})
	}
}

func TestWhatIsNoSecretStays(t *testing.T) {
	t.Parallel()
	const text = "connection to db.example:27017 refused"
	for _, r := range []*redact.Redactor{{}, redact.New(), redact.New("", "mongodb://db.example:27017/x")} {
		if got := r.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
