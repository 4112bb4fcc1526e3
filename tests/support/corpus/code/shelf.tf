# Copyright.

terraform {
  required_version = ">= 1.0"
}

variable "region" {
  description = "Where birds live."
  type        = string
}

# Holds books.
resource "aws_s3_bucket" "shelf" {
  bucket = "shelf-${var.region}"
  tags = {
    Name = "shelf"
  }
}

resource "aws_s3_bucket_policy" "shelf" {
  bucket = aws_s3_bucket.shelf.id
}

module "net" {
  source = "./modules/net"
}

output "arn" { value = aws_s3_bucket.shelf.arn }
