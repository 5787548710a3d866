package namespace

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Kinds of tokens.
const (
	kindSignature = "servicebus.windows.net:sastoken"
	kindJWT       = "jwt"
)

// scope is what a credential is asked for. The doubled slash is part of it.
const scope = "https://servicebus.azure.net//.default"

// Token proves who comes.
type Token struct {
	Kind, Text string
	// Ends is when it stops being good; the zero time where that is not known.
	Ends time.Time
}

// Token makes a token for an audience. Where it is made here it is good for life.
func (a *Access) Token(ctx context.Context, audience string, life time.Duration) (Token, error) {
	switch {
	case a.Signature != "":
		return Token{Kind: kindSignature, Text: a.Signature}, nil
	case a.Credential == nil:
		ends := time.Now().Add(life).Truncate(time.Second)
		return Token{Kind: kindSignature, Text: sign(audience, a.KeyName, a.Key, ends), Ends: ends}, nil
	}
	got, err := a.Credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{scope}})
	if err != nil {
		return Token{}, fmt.Errorf("get a token: %w", err)
	}
	return Token{Kind: kindJWT, Text: got.Token, Ends: got.ExpiresOn}, nil
}

// sign makes a shared access signature: the audience and the end of its life,
// signed with a key.
func sign(audience, keyName, key string, ends time.Time) string {
	resource := strings.ToLower(url.QueryEscape(audience))
	expiry := strconv.FormatInt(ends.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(resource + "\n" + expiry))
	signature := url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return "SharedAccessSignature sr=" + resource + "&sig=" + signature + "&se=" + expiry + "&skn=" + keyName
}
