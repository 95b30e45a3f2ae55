package providers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Credentials sign requests to AWS.
type Credentials struct {
	// ID of the access key, its Secret, and the Token of temporary ones, which
	// may be empty.
	ID, Secret, Token string
}

var credentialForm = regexp.MustCompile(`^([A-Z0-9]{16,128}):([^:\s]{16,}?)(?::(\S+))?$`)

// ParseCredentials reads a key of the form ID:SECRET or ID:SECRET:TOKEN; ok is
// false for any other key, such as a bearer key.
func ParseCredentials(key string) (c Credentials, ok bool) {
	m := credentialForm.FindStringSubmatch(key)
	if m == nil {
		return c, false
	}
	return Credentials{ID: m[1], Secret: m[2], Token: m[3]}, true
}

var regionForm = regexp.MustCompile(`(?:^|[.])([a-z]{2}(?:-[a-z]+)+-[0-9]+)[.]`)

// Sign signs a request with Signature Version 4. An empty region is read from
// the host's name; the error wraps ErrSource when it does not tell either.
func Sign(ctx context.Context, r *http.Request, body []byte, c Credentials, service, region string, now time.Time) error {
	if region == "" {
		m := regionForm.FindStringSubmatch(strings.ToLower(r.URL.Hostname()))
		if m == nil {
			return fmt.Errorf("%w: options: the address does not tell the region; set region", ErrSource)
		}
		region = m[1]
	}
	sum := sha256.Sum256(body)
	return v4.NewSigner().SignHTTP(ctx, aws.Credentials{AccessKeyID: c.ID, SecretAccessKey: c.Secret, SessionToken: c.Token},
		r, hex.EncodeToString(sum[:]), service, region, now)
}
