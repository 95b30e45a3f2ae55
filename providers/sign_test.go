package providers_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"homeagent/providers"
)

// The vectors get-vanilla and post-vanilla of the test suite that AWS publishes
// for Signature Version 4.
func TestSignVectors(t *testing.T) {
	at := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	c := providers.Credentials{ID: "AKIDEXAMPLE", Secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
	for method, want := range map[string]string{
		"GET":  "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
		"POST": "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
	} {
		r, err := http.NewRequestWithContext(t.Context(), method, "https://example.amazonaws.com/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := providers.Sign(t.Context(), r, nil, c, "service", "us-east-1", at); err != nil {
			t.Fatal(err)
		}
		head := "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + want
		if got := r.Header.Get("Authorization"); got != head {
			t.Errorf("%s\n got %s\nwant %s", method, got, head)
		}
	}
}

func TestSignFindsTheRegion(t *testing.T) {
	c := providers.Credentials{ID: "AKIDEXAMPLE", Secret: "secret", Token: "tok"}
	for host, ok := range map[string]bool{"bedrock-runtime.eu-west-1.amazonaws.com": true, "x.us-gov-west-1.amazonaws.com": true, "localhost": false} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+host+"/model/a%3Ab/converse", nil)
		if err != nil {
			t.Fatal(err)
		}
		err = providers.Sign(t.Context(), r, []byte("{}"), c, "bedrock", "", time.Unix(0, 0))
		if (err == nil) != ok || err != nil && !errors.Is(err, providers.ErrSource) {
			t.Errorf("%s: %v", host, err)
		}
		if ok && r.Header.Get("X-Amz-Security-Token") != "tok" {
			t.Errorf("%s: the token is missing", host)
		}
	}
}

func TestParseCredentials(t *testing.T) {
	for key, ok := range map[string]bool{
		"AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY":     true,
		"ASIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY:tok": true,
		"bedrock-api-key-abc": false, "": false, "short:x": false, "sk-ant:abcdefghijklmnopqrstuvwxyz": false,
	} {
		c, got := providers.ParseCredentials(key)
		if got != ok || ok && (len(c.ID) != 20 || len(c.Secret) != 40) {
			t.Errorf("%q: %+v, %v", key, c, got)
		}
	}
}
