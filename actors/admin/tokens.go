package admin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"homeagent/configs"
	"homeagent/messages"
	"homeagent/messages/api"
)

// tokenPrefix makes a token known as one wherever it turns up.
const tokenPrefix = "homed_"

// listTokens is GET /api/v1/tokens.
func (f *face) listTokens(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	l, no := ask[*messages.TokenList](f, r.Context(), askLimit, "guard", &messages.ListTokens{})
	if no != nil {
		return nil, no
	}
	return api.NamedTokens{Tokens: list(l.GetTokens(), namedToken)}, nil
}

// addToken is POST /api/v1/tokens. The token is told once; the node keeps its hash.
func (f *face) addToken(w http.ResponseWriter, r *http.Request) (any, *refusal) {
	var a api.AddToken
	if no := decode(w, r, &a, true); no != nil {
		return nil, no
	}
	who := &messages.Principal{Id: "token:" + a.Name, Name: a.Name, Kind: messages.PrincipalKind_PRINCIPAL_KIND_TOKEN}
	switch a.Principal {
	case "", "token":
	case "person":
		who.Id, who.Kind = "person:"+a.Name, messages.PrincipalKind_PRINCIPAL_KIND_PERSON
	default:
		return nil, malformed("A token stands for a program or a person.", "Set principal to token or person.").with("field", "principal")
	}
	now := time.Now()
	t := &messages.NamedToken{Name: a.Name, Principal: who, CreatedUs: now.UnixMicro()}
	if a.Expires != "" {
		d, err := configs.ParseDuration(a.Expires)
		if err != nil || d <= 0 {
			return nil, malformed("The token cannot expire after "+a.Expires+".", "Use a time such as 30d or 12h, or leave it out for never.").with("field", "expires")
		}
		t.ExpiresUs = now.Add(d).UnixMicro()
		if t.GetExpiresUs() < now.UnixMicro() {
			return nil, malformed("The token would live longer than there are times.", "Leave expires out for never.").with("field", "expires")
		}
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it never fails
	text := tokenPrefix + base64.RawURLEncoding.EncodeToString(secret)
	digest := sha256.Sum256([]byte(text))
	t.Digest = digest[:]
	got, no := ask[*messages.NamedToken](f, context.WithoutCancel(r.Context()), askLimit, "guard", &messages.AddToken{Token: t})
	if no != nil {
		return nil, no
	}
	f.log().Info("token added", "request_id", requestID(r), "name", a.Name, "principal", who.GetId())
	out := namedToken(got)
	out.Token = text
	return answer{http.StatusCreated, out}, nil
}

// removeToken is DELETE /api/v1/tokens/{name}. What goes on under it ends.
func (f *face) removeToken(_ http.ResponseWriter, r *http.Request) (any, *refusal) {
	got, no := ask[*messages.NamedToken](f, context.WithoutCancel(r.Context()), askLimit, "guard", &messages.RemoveToken{Name: r.PathValue("name")})
	if no != nil {
		return nil, no
	}
	if err := f.holders.end(got.GetDigest()); err != nil {
		f.log().Error("requests of a removed token go on", "name", got.GetName(), "error", err)
	}
	f.log().Info("token removed", "request_id", requestID(r), "name", got.GetName())
	return namedToken(got), nil
}

func namedToken(t *messages.NamedToken) api.NamedToken {
	return api.NamedToken{
		Name: t.GetName(), Principal: principal(t.GetPrincipal()), Created: moment(t.GetCreatedUs()), Expires: moment(t.GetExpiresUs()),
		Expired: t.GetExpiresUs() != 0 && t.GetExpiresUs() <= time.Now().UnixMicro(),
	}
}
