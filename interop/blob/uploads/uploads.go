// Package uploads finds multipart uploads that were never completed, such as those of a process that
// was killed. They take room, and no list of objects has them.
package uploads

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// S3 returns the Sweep of blob.Options for a bucket of S3. A bucket that blob.PrefixedBucket has
// made calls its objects otherwise, and needs a Sweep of its own.
func S3(c *s3.Client, bucket string) func(ctx context.Context, prefix string, gone func(name string) bool) error {
	return func(ctx context.Context, prefix string, gone func(name string) bool) error {
		in := &s3.ListMultipartUploadsInput{Bucket: aws.String(bucket), Prefix: aws.String(prefix)}
		for {
			out, err := c.ListMultipartUploads(ctx, in)
			if err != nil {
				return err
			}
			for _, u := range out.Uploads {
				if !gone(aws.ToString(u.Key)) {
					continue
				}
				_, err := c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: in.Bucket, Key: u.Key,
					UploadId: u.UploadId})
				if none := (*types.NoSuchUpload)(nil); err != nil && !errors.As(err, &none) {
					return err
				}
			}
			if !aws.ToBool(out.IsTruncated) {
				return nil
			}
			key, id := aws.ToString(out.NextKeyMarker), aws.ToString(out.NextUploadIdMarker)
			if key == aws.ToString(in.KeyMarker) && id == aws.ToString(in.UploadIdMarker) {
				return fmt.Errorf("the list of uploads in %s does not go on after %q", bucket, key)
			}
			in.KeyMarker, in.UploadIdMarker = out.NextKeyMarker, out.NextUploadIdMarker
		}
	}
}
